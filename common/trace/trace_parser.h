// TraceParser: turns lines into a Trace, and says which line is wrong.
#ifndef METS_COMMON_TRACE_TRACE_PARSER_H_
#define METS_COMMON_TRACE_TRACE_PARSER_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/trace/trace.h"

namespace mets::trace {

// Not thread-safe. After an error, no further call is allowed. Errors are
// INVALID_ARGUMENT (DATA_LOSS for what is cut or ended by an error) and start
// with "FILE:LINE: ".
class TraceParser {
 public:
  // `file` names the input in errors; `job` is the trace's job when the text
  // does not name one.
  TraceParser(std::string file, std::string job);

  // The next line, without its newline.
  absl::Status Parse(absl::string_view line);
  // The input has ended; in the middle of a line unless `complete`. The parser
  // is empty afterwards.
  absl::StatusOr<Trace> Finish(bool complete);

 private:
  enum class Expect { kFirstLine, kColumns, kEvents, kNothing };

  absl::Status ParseMagic(absl::string_view line);
  absl::Status ParseColumns(absl::string_view line);
  absl::Status ParseComment(absl::string_view line);
  absl::Status ParseEvent(absl::string_view line);
  absl::Status ParseTime(absl::string_view text, absl::Duration* time) const;
  absl::Status ParseNumber(absl::string_view text, absl::string_view what,
                           uint64_t* number) const;
  // Whether the event can follow those before it.
  absl::Status Check(const Event& event);
  absl::Status CheckAlloc(const Event& event);
  absl::Status CheckUse(const Event& event);
  absl::Status CheckOp(const Event& event);
  uint32_t NameIndex(absl::string_view name);
  absl::Status Wrong(absl::string_view what) const;
  absl::Status Cut(absl::string_view what) const;

  struct Block {
    Bytes bytes;
    uint64_t line = 0;  // That allocated it, or freed it last.
    bool live = false;
  };

  const std::string file_;
  Trace trace_;
  Expect expect_ = Expect::kFirstLine;
  bool own_format_ = false;
  uint64_t line_ = 0;
  absl::flat_hash_map<uint64_t, Block> blocks_;
  Bytes live_;
  absl::flat_hash_set<uint64_t> ops_;  // That have begun and not ended.
  absl::flat_hash_map<std::string, uint32_t> names_;
};

}  // namespace mets::trace

#endif  // METS_COMMON_TRACE_TRACE_PARSER_H_
