// What only the core of `make sanitize` and `make fuzz` has, for tests/bpe/sanitized.py to call
// through ctypes: which branches an input takes, how many, and leaks on purpose.

#include <Python.h>

#include <cstddef>
#include <cstdint>

namespace {

constexpr std::size_t kPlaces = std::size_t{1} << 16;
std::uint8_t passed[kPlaces];
thread_local std::uint64_t steps = 0;

}  // namespace

extern "C" {

// Called at every branch of what is compiled with -fsanitize-coverage=trace-pc, by g++ and by
// clang; this file is compiled without. Places of the program are hashed: two that share an element
// hide each other, which hurts nobody. Threads may lose a count to each other.
__attribute__((visibility("hidden"))) void __sanitizer_cov_trace_pc() {
  const auto place = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) -
                     reinterpret_cast<std::uintptr_t>(&passed);
  std::uint8_t& count = passed[(place * 0x9E3779B97F4A7C15) >> 48];
  count += count < 255;
  ++steps;
}

// How many branches this thread has taken in the core since it began.
__attribute__((visibility("default"))) std::uint64_t bpe_steps() { return steps; }

// 65,536 numbers: how often each place was passed, 255 for more.
__attribute__((visibility("default"))) std::uint8_t* bpe_coverage() { return passed; }

__attribute__((visibility("default"))) void bpe_leak_memory() {
  auto* volatile lost = new std::uint64_t[50];
  lost[0] = 1;
}

__attribute__((visibility("default"))) void bpe_leak_object() {
  PyObject* volatile lost = PyBytes_FromStringAndSize(nullptr, 400);
  (void)lost;
}
}
