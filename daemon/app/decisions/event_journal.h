// EventJournal: the decision log's events in metsd's own log.
#ifndef METS_DAEMON_APP_DECISIONS_EVENT_JOURNAL_H_
#define METS_DAEMON_APP_DECISIONS_EVENT_JOURNAL_H_

#include <spdlog/logger.h>

#include <cstdint>

#include "daemon/app/decisions/allowance.h"
#include "daemon/core/ports.h"

namespace mets::app {

// Writes a line for each decision (details excepted), at most some a second,
// and of moves some a minute, so that they keep nothing else out; what is too
// much is counted, and the log itself still has it. A denial is written whole:
// its text is what the job got. Denials, and processes that do not answer, are
// warnings.
//
// Writes from the log's thread until it is destroyed. Both are borrowed.
class EventJournal {
 public:
  EventJournal(core::EventLog& events, spdlog::logger& log);
  ~EventJournal();
  EventJournal(const EventJournal&) = delete;
  EventJournal& operator=(const EventJournal&) = delete;

 private:
  void WriteNew();
  void Write(const core::Event& event);

  core::EventLog& events_;
  spdlog::logger& log_;
  uint64_t written_ = 0;  // Up to this number.
  Allowance moves_;
  Allowance others_;
  int64_t left_out_ = 0;
  uint64_t watch_ = 0;
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_DECISIONS_EVENT_JOURNAL_H_
