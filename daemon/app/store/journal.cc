#include "daemon/app/store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets::app {
namespace {

constexpr uint64_t kMagic = 0x6c6e726a7374656d;  // "metsjrnl"
// Of what stands in frames: another one for every change of change_code.cc, and
// of what KeptState means.
constexpr uint64_t kFormat = 1;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
// In words. Only what is written takes memory.
constexpr size_t kHeaderWords = 512;
constexpr size_t kAreaWords = size_t{16} << 20;
constexpr size_t kAllBytes = (kHeaderWords + 2 * kAreaWords) * 8;
// A frame's length and checksum stand before it; a zero ends the last one.
constexpr size_t kFrameWords = 2;
// Where an area begins to be long: in words, and as many times what it began
// with.
constexpr size_t kLongWords = size_t{2} << 20;
constexpr size_t kLongTimes = 4;

uint64_t Checksum(const uint64_t* words, size_t count) {
  uint64_t sum = kMagic;
  for (size_t i = 0; i < count; ++i) {
    sum = (sum ^ words[i]) * 0x9e3779b97f4a7c15;
    sum ^= sum >> 32;
  }
  return sum;
}

absl::Status Damaged(const char* what) {
  return absl::DataLossError(absl::StrCat("the journal ", what));
}

absl::StatusOr<uint64_t*> Map(const UniqueFd& fd) {
  void* words =
      mmap(nullptr, kAllBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (words == MAP_FAILED) return ErrnoToStatus(errno, "map the journal");
  return static_cast<uint64_t*>(words);
}

// The frames of an area, one after the other.
class Frames {
 public:
  explicit Frames(const uint64_t* area) : at_(area), end_(area + kAreaWords) {}

  // False behind the last one.
  absl::StatusOr<bool> Next(const uint64_t** begin, const uint64_t** end) {
    const uint64_t length = *at_;
    if (length == 0) return false;
    if (length > static_cast<size_t>(end_ - at_) - kFrameWords - 1) {
      return Damaged("has a frame of an impossible length");
    }
    *begin = at_ + kFrameWords;
    *end = *begin + length;
    if (at_[1] != Checksum(*begin, length)) {
      return Damaged("has a frame with a wrong checksum");
    }
    at_ = *end;
    return true;
  }

 private:
  const uint64_t* at_;
  const uint64_t* const end_;
};

}  // namespace

struct Journal::Header {
  uint64_t magic, format;
  uint64_t area;  // The number of the one that counts.
  uint64_t readers;
};

absl::StatusOr<std::unique_ptr<Journal>> Journal::Create() {
  UniqueFd fd(memfd_create("mets-journal", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.ok()) return ErrnoToStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), kAllBytes) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return ErrnoToStatus(errno, "make the journal");
  }
  METS_ASSIGN_OR_RETURN(uint64_t * words, Map(fd));
  return absl::WrapUnique(new Journal(std::move(fd), words));
}

absl::StatusOr<std::unique_ptr<Journal>> Journal::Open(UniqueFd fd) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoToStatus(errno, "open journal");
  if (info.st_size != static_cast<off_t>(kAllBytes) ||
      (fcntl(fd.get(), F_GET_SEALS) & kSeals) != kSeals) {
    return absl::InvalidArgumentError("the descriptor is no journal");
  }
  METS_ASSIGN_OR_RETURN(uint64_t * words, Map(fd));
  auto journal = absl::WrapUnique(new Journal(std::move(fd), words));
  if (journal->header().magic == kMagic &&
      journal->header().format != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat("the journal has format ", journal->header().format,
                     ", this metsd reads ", kFormat));
  }
  return journal;
}

Journal::Journal(UniqueFd fd, uint64_t* words)
    : fd_(std::move(fd)), words_(words) {}

Journal::~Journal() { munmap(words_, kAllBytes); }

Journal::Header& Journal::header() const {
  return *reinterpret_cast<Header*>(words_);
}

uint64_t* Journal::Area(uint64_t number) const {
  return words_ + kHeaderWords + number % 2 * kAreaWords;
}

uint64_t Journal::CountReader() { return ++header().readers; }

void Journal::NoteServing() { header().readers = 0; }

void Journal::Break() { header().magic = 0; }

absl::StatusOr<Journal::Contents> Journal::Read() const {
  if (header().magic != kMagic) return Damaged("was given up");
  Contents contents;
  Frames frames(Area(header().area));
  const uint64_t* at = nullptr;
  const uint64_t* end = nullptr;
  METS_ASSIGN_OR_RETURN(bool more, frames.Next(&at, &end));
  if (!more || !Decode(&at, end, &contents.basis) || at != end) {
    return Damaged("has no basis");
  }
  while (true) {
    METS_ASSIGN_OR_RETURN(more, frames.Next(&at, &end));
    if (!more) return contents;
    while (at != end) {
      core::Change change;
      if (!Decode(&at, end, &change)) return Damaged("has an unknown change");
      contents.state.Apply(change);
    }
  }
}

absl::Status Journal::ClearArea(uint64_t number) {
  const off_t offset = (Area(number) - words_) * 8;
  if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                kAreaWords * 8) != 0) {
    return ErrnoToStatus(errno, "clear a part of the journal");
  }
  return absl::OkStatus();
}

absl::Status Journal::Rewrite(const JournalBasis& basis,
                              const core::KeptState& state) {
  const uint64_t before = header().area;
  METS_RETURN_IF_ERROR(ClearArea(before + 1));
  area_ = Area(before + 1);
  used_ = 0;
  frame_.clear();
  Encode(basis, &frame_);
  METS_RETURN_IF_ERROR(Write(frame_));
  METS_RETURN_IF_ERROR(Append(state.All()));
  begun_with_ = used_;
  __atomic_store_n(&header().area, before + 1, __ATOMIC_RELEASE);
  header().format = kFormat;
  __atomic_store_n(&header().magic, kMagic, __ATOMIC_RELEASE);
  return ClearArea(before);
}

absl::Status Journal::Append(const std::vector<core::Change>& changes) {
  frame_.clear();
  for (const core::Change& change : changes) Encode(change, &frame_);
  return Write(frame_);
}

absl::Status Journal::Write(const std::vector<uint64_t>& words) {
  if (words.empty()) return absl::OkStatus();
  if (words.size() + kFrameWords + 1 > kAreaWords - used_) {
    Break();
    return absl::ResourceExhaustedError("the journal is full");
  }
  uint64_t* frame = area_ + used_;
  std::memcpy(frame + kFrameWords, words.data(), words.size() * 8);
  frame[1] = Checksum(words.data(), words.size());
  __atomic_store_n(frame, words.size(), __ATOMIC_RELEASE);
  used_ += kFrameWords + words.size();
  return absl::OkStatus();
}

bool Journal::long_enough() const {
  return used_ > std::max(kLongWords, kLongTimes * begun_with_);
}

}  // namespace mets::app
