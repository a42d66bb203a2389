// Read before every file of SimGrid: asks libstdc++ for the oldest of two versions of one function. With the newest, the wheel would need
// GCC 12's libstdc++ (manylinux_2_35, no RHEL 9) for a wait that no simulation of retrompi uses: SimGrid's thread contexts.
#include <cstddef>  // says whose library it is

#if defined(__x86_64__) && defined(__GLIBCXX__)
#define RETROMPI_WAIT "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE"
__asm__(".symver " RETROMPI_WAIT ", " RETROMPI_WAIT "@GLIBCXX_3.4.11");
#undef RETROMPI_WAIT
#endif
