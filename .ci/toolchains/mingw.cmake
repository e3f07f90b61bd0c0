# mingw-w64 for 64-bit Windows. Its headers are included first, as those of some libraries do: they
# define common words as macros.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)
set(CMAKE_C_FLAGS_INIT "-include winsock2.h -include windows.h")
