# Shared, so that delocate bundles them. Each machine builds for its own kind.
cmake_host_system_information(RESULT processor QUERY OS_PLATFORM)
set(VCPKG_OSX_ARCHITECTURES "${processor}")
if(processor STREQUAL "arm64")
  set(VCPKG_TARGET_ARCHITECTURE arm64)
else()
  set(VCPKG_TARGET_ARCHITECTURE x64)
endif()
set(VCPKG_CMAKE_SYSTEM_NAME Darwin)
# The wheel's own, or it would promise systems that these libraries do not run on.
set(VCPKG_OSX_DEPLOYMENT_TARGET 11.0)
set(VCPKG_CRT_LINKAGE dynamic)
set(VCPKG_LIBRARY_LINKAGE dynamic)
set(VCPKG_BUILD_TYPE release)
