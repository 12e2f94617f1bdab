// Makes the mutexes of Abseil's library, which is not instrumented, known to
// ThreadSanitizer: preloaded, these definitions stand before the library's, and
// call them.
#include <dlfcn.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

// The library's function of the same name as `own`.
template <typename Member>
void* Next(Member own) {
  union {
    Member member;
    void* address;
  } function = {own};
  Dl_info info;
  dladdr(function.address, &info);
  return dlsym(RTLD_NEXT, info.dli_sname);
}

// Calls the library's function, which may look at what others' conditions name.
template <typename Result, typename... Parameters, typename Object>
Result Call(void* function, Object* object, Parameters... parameters) {
  struct Ignored {
    Ignored() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
    ~Ignored() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
  } ignored;
  return reinterpret_cast<Result (*)(Object*, Parameters...)>(function)(
      object, parameters...);
}

// The same for a function that lets go of `mutex` and takes it again.
template <typename Result, typename... Parameters, typename Object>
Result CallUnlocked(Mutex* mutex, void* function, Object* object,
                    Parameters... parameters) {
  struct Released {
    explicit Released(Mutex* m) : mutex(m) { __tsan_release(mutex); }
    ~Released() { __tsan_acquire(mutex); }
    Mutex* const mutex;
  } released(mutex);
  return Call<Result, Parameters...>(function, object, parameters...);
}

}  // namespace

void Mutex::Lock() {
  static void* const next = Next(&Mutex::Lock);
  Call<void>(next, this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static void* const next = Next(&Mutex::TryLock);
  const bool locked = Call<bool>(next, this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Unlock() {
  static void* const next = Next(&Mutex::Unlock);
  __tsan_release(this);
  Call<void>(next, this);
}

void Mutex::ReaderLock() {
  static void* const next = Next(&Mutex::ReaderLock);
  Call<void>(next, this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static void* const next = Next(&Mutex::ReaderUnlock);
  __tsan_release(this);
  Call<void>(next, this);
}

void Mutex::Await(const Condition& condition) {
  static void* const next = Next(&Mutex::Await);
  CallUnlocked<void, const Condition&>(this, next, this, condition);
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static void* const next = Next(&Mutex::AwaitWithDeadline);
  return CallUnlocked<bool, const Condition&>(this, next, this, condition,
                                              deadline);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static void* const next = Next(&Mutex::AwaitWithTimeout);
  return CallUnlocked<bool, const Condition&>(this, next, this, condition,
                                              timeout);
}

void CondVar::Wait(Mutex* mutex) {
  static void* const next = Next(&CondVar::Wait);
  CallUnlocked<void>(mutex, next, this, mutex);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static void* const next = Next(&CondVar::WaitWithDeadline);
  return CallUnlocked<bool>(mutex, next, this, mutex, deadline);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static void* const next = Next(&CondVar::WaitWithTimeout);
  return CallUnlocked<bool>(mutex, next, this, mutex, timeout);
}

ABSL_NAMESPACE_END
}  // namespace absl
