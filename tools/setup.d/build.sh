# How the scripts beside tools/setup call the build. Sourced by them.

# An object that was compiled before need not be compiled again, in whichever clone or build folder it was.
if command -v ccache >/dev/null 2>&1; then
    export CMAKE_C_COMPILER_LAUNCHER=${CMAKE_C_COMPILER_LAUNCHER-ccache}
    export CMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER-ccache}
fi
# Colours and a moving status line only where somebody watches.
[ -t 1 ] || export CLICOLOR=0 NINJA_STATUS='[%f/%t] '
