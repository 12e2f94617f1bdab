// Journal: a core's changes, in memory that outlives the process.
#ifndef METS_DAEMON_APP_STORE_JOURNAL_H_
#define METS_DAEMON_APP_STORE_JOURNAL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "daemon/app/store/change_code.h"
#include "daemon/core/kept/kept_state.h"

namespace mets::app {

// A memfd with two areas. In the one that counts stand frames: the basis, the
// state when the area was begun, and the changes of each step since. A frame
// has its length, which is written last, and a checksum: a process that is
// killed while it writes leaves a journal without that frame. When an area has
// become long, the other one is begun.
//
// Not thread-safe. A journal that cannot be written is broken: nobody reads it.
class Journal {
 public:
  struct Contents {
    JournalBasis basis;
    core::KeptState state;
  };

  static absl::StatusOr<std::unique_ptr<Journal>> Create();
  // One that another process has made. INVALID_ARGUMENT when `fd` is none, or
  // one of another format.
  static absl::StatusOr<std::unique_ptr<Journal>> Open(UniqueFd fd);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  int fd() const { return fd_.get(); }

  // DATA_LOSS when it is broken or damaged.
  absl::StatusOr<Contents> Read() const;

  // Begins the other area with this; from then on, that is what counts.
  absl::Status Rewrite(const JournalBasis& basis, const core::KeptState& state);
  // REQUIRES: it was rewritten by this process. RESOURCE_EXHAUSTED, and it is
  // broken, when there is no room.
  absl::Status Append(const std::vector<core::Change>& changes);
  // It has become long: Rewrite would shorten it.
  bool long_enough() const;
  void Break();

  // How many processes, this one included, have read it since one has served.
  uint64_t CountReader();
  void NoteServing();

 private:
  struct Header;

  Journal(UniqueFd fd, uint64_t* words);
  Header& header() const;
  uint64_t* Area(uint64_t number) const;
  absl::Status ClearArea(uint64_t number);
  absl::Status Write(const std::vector<uint64_t>& words);

  const UniqueFd fd_;
  uint64_t* const words_;  // All of it.
  // Of the area that this process writes, in words.
  uint64_t* area_ = nullptr;
  size_t begun_with_ = 0;
  size_t used_ = 0;
  std::vector<uint64_t> frame_;  // Kept for its memory.
};

}  // namespace mets::app

#endif  // METS_DAEMON_APP_STORE_JOURNAL_H_
