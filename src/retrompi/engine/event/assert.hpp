// Assertions of the engine's invariants: in debug and sanitizer builds; a release (NDEBUG) compiles them out.
#pragma once
#ifdef NDEBUG
#define RETROMPI_ASSERT(expression) ((void)sizeof(!(expression)))
#else
#include <cstdio>
#include <cstdlib>
#define RETROMPI_ASSERT(expression) \
  ((expression) ? (void)0 : ((void)std::fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__, #expression), std::abort()))
#endif
