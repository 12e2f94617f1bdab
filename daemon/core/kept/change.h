// Changes: what a core would have to tell its successor, as it happens.
#ifndef METS_DAEMON_CORE_KEPT_CHANGE_H_
#define METS_DAEMON_CORE_KEPT_CHANGE_H_

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/shares/share.h"
#include "daemon/core/values.h"

namespace mets::core {

// A session and its process, and what its job may have. Devices by index.
struct KeptSession {
  SessionId id;
  DomainId domain;
  ProcessIdentity process;
  std::string job;
  Bytes limit, guarantee;
  int priority = 0;
  int weight = 1;
  bool expected = false;      // A record of a daemon of an earlier epoch.
  std::vector<Bytes> orphan;  // By device.

  friend bool operator==(const KeptSession& a, const KeptSession& b) {
    const auto parts = [](const KeptSession& s) {
      return std::tie(s.id, s.domain, s.process, s.job, s.limit, s.guarantee,
                      s.priority, s.weight, s.expected, s.orphan);
    };
    return parts(a) == parts(b);
  }
};

// A chunk that exists: a session's, a share's, or free.
struct KeptChunk {
  ChunkId id;
  size_t device = 0;
  size_t size_class = 0;
  DomainId domain;
  SessionId holder;
  bool shared = false;
};

struct KeptExtent {
  ExtentId id;
  DomainId domain;
  Bytes size;
};

struct KeptSlot {
  Slot slot;
  SessionId session;
  size_t device = 0;
};

struct KeptShare {
  size_t device = 0;
  Share share;
};

// The highest identifiers that were given, and how often a core has followed
// another in this epoch.
struct KeptIds {
  SessionId session;
  ChunkId chunk;
  ExtentId extent;
  SlotId slot;
  ShareId share;
  uint64_t succession = 0;
};

template <typename Key>
struct Gone {
  Key key;
};
using ShareKey = std::pair<size_t, Share::Key>;  // With the device.

// Each replaces what was said of the same thing before.
using Change = std::variant<KeptSession, KeptChunk, KeptExtent, KeptSlot,
                            KeptShare, KeptIds, Gone<SessionId>, Gone<ChunkId>,
                            Gone<ExtentId>, Gone<SlotId>, Gone<ShareKey>>;

// Collects changes, where somebody wants them. Not thread-safe.
class ChangeLog {
 public:
  explicit ChangeLog(bool on) : on_(on) {}

  bool on() const { return on_; }
  template <typename T>
  void Add(T change) {
    if (on_) changes_.emplace_back(std::move(change));
  }
  std::vector<Change> Take() { return std::exchange(changes_, {}); }

 private:
  const bool on_;
  std::vector<Change> changes_;
};

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_KEPT_CHANGE_H_
