// Without the GIL for as long as an object of this class lives.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <thread>
#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace bpe {

// When Python ends, a daemon thread that asks for the GIL again is unwound by pthread_exit (Python
// 3.14 has it hang). Unwinding out of a destructor, as of pybind11's gil_scoped_release, ends the
// process by std::terminate; and views would give their buffers back without the GIL. So the thread
// rests here until the process is gone.
class Unlocked {
 public:
  Unlocked() : state_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  ~Unlocked() {
#ifdef __GLIBCXX__
    try {
      PyEval_RestoreThread(state_);
    } catch (const abi::__forced_unwind&) {
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    }
#else
    PyEval_RestoreThread(state_);
#endif
  }

 private:
  PyThreadState* state_;
};

// What f() returns, called without the GIL.
template <typename F>
decltype(auto) unlocked(F&& f) {
  const Unlocked while_it_runs;
  return f();
}

// Of a function that takes no object of Python.
using Release = pybind11::call_guard<Unlocked>;

}  // namespace bpe
