// METS_CHECK: what can only fail through a bug in METS ends the process.
#ifndef METS_COMMON_BASE_CHECK_H_
#define METS_COMMON_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace mets::internal {

// Collects the message and aborts when it goes.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition) {
    text_ << file << ":" << line << ": METS_CHECK failed: " << condition << " ";
  }
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure() {
    std::fprintf(stderr, "%s\n", text_.str().c_str());
    std::fflush(stderr);
    std::abort();
  }
  std::ostream& stream() { return text_; }

 private:
  std::ostringstream text_;
};

// Turns `… << x` into a void expression.
struct CheckVoidify {
  void operator&(std::ostream&) {}
};

}  // namespace mets::internal

// Aborts with the condition's text and whatever is streamed into it:
//   METS_CHECK(free >= Bytes()) << "free " << free << " in pool " << id;
// Always on, also in release builds; the streamed values are evaluated only on
// failure.
#define METS_CHECK(condition)                                              \
  __builtin_expect(!!(condition), 1)                                       \
      ? (void)0                                                            \
      : ::mets::internal::CheckVoidify() &                                 \
            ::mets::internal::CheckFailure(__FILE__, __LINE__, #condition) \
                .stream()

// METS_CHECK that a Status or StatusOr is ok; shows it otherwise.
#define METS_CHECK_OK(expression)                              \
  do {                                                         \
    const auto& mets_check_status = (expression);              \
    METS_CHECK(mets_check_status.ok())                         \
        << #expression << ": "                                 \
        << ::mets::internal::CheckedStatus(mets_check_status); \
  } while (false)

namespace mets::internal {

template <typename T>
auto CheckedStatus(const T& value) -> decltype(value.status()) {
  return value.status();
}
template <typename T>
auto CheckedStatus(const T& value) -> decltype(value.raw_code(), value) {
  return value;
}

}  // namespace mets::internal

#endif  // METS_COMMON_BASE_CHECK_H_
