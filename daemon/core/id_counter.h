// IdCounter: hands out identifiers 1, 2, 3, …
#ifndef METS_DAEMON_CORE_ID_COUNTER_H_
#define METS_DAEMON_CORE_ID_COUNTER_H_

#include <algorithm>
#include <cstdint>

namespace mets::core {

// Not thread-safe.
template <typename IdType>
class IdCounter {
 public:
  IdType Next() { return IdType(++last_); }
  IdType last() const { return IdType(last_); }
  // What follows is above `last`.
  void Skip(IdType last) { last_ = std::max(last_, last.value()); }

 private:
  uint64_t last_ = 0;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_ID_COUNTER_H_
