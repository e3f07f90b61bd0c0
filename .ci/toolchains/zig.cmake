# Zig as a C compiler for another platform: $ZIG is the program, $ZIG_TARGET its target.
set(words $ENV{ZIG_TARGET})
if(words MATCHES "macos")
  set(CMAKE_SYSTEM_NAME Darwin)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${words}")
set(CMAKE_C_COMPILER "$ENV{ZIG}" cc -target ${words})
# The usual tools know their own platform only. LLVM's know all.
set(CMAKE_AR llvm-ar)
set(CMAKE_RANLIB llvm-ranlib)
set(CMAKE_INSTALL_NAME_TOOL true) # nothing that is built for macOS is run
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE NEVER)
