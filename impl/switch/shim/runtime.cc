#include <cstddef>

// What the compiler asks of the C++ library, which is not there: nothing is ever made on a heap.

void operator delete(void* /*memory*/, std::size_t /*bytes*/) noexcept {}
void operator delete(void* /*memory*/) noexcept {}
extern "C" void __cxa_pure_virtual() {}  // NOLINT: the name is the compiler's
