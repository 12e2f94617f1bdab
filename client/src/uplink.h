// Uplink: what a device needs of the session.
#ifndef METS_CLIENT_SRC_UPLINK_H_
#define METS_CLIENT_SRC_UPLINK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/chunk_store.h"
#include "common/base/bytes.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// What the daemon granted: chunks for each range asked for.
struct Grant {
  std::vector<ChunkSet> ranges;
  bool overdraft = false;
  uint64_t generation = 0;  // Of the stream: the token dies with it.
};

class Device;

// How a request for memory waits.
enum class WaitMode {
  kPlain,
  kToken,   // With the overdraft token; nothing is pinned.
  kPinned,  // With the overdraft token, while its op has pinned buffers.
};
struct Waiting {
  WaitMode mode = WaitMode::kPlain;
  uint64_t op = 0;  // Whose token it is (Op::number).
  // Then the request is withdrawn: RESOURCE_EXHAUSTED.
  absl::Time until = absl::InfiniteFuture();
  bool fewest_chunks = false;  // Each range of as few chunks as can be.
};

// Thread-safe. Outlives every device.
class Uplink {
 public:
  virtual ~Uplink() = default;

  // Queues a message. Without a stream it is dropped: the snapshot of the next
  // one says it all. Does not block.
  virtual void Send(v1::ClientMessage message) = 0;

  // Asks for chunks and waits for them until `deadline` (which may be
  // InfiniteFuture, or the past: only what is free or cached), also while the
  // daemon is away. The chunks are held for the caller.
  // RESOURCE_EXHAUSTED: denied; OUT_OF_RANGE: waiting can never help; other
  // codes as mets.h's statuses.
  virtual absl::StatusOr<Grant> Acquire(Device& device,
                                        const std::vector<Bytes>& ranges,
                                        absl::Time deadline,
                                        Waiting waiting) = 0;

  // Asks for a share with a PublishShare or AttachShare, whose request_id is
  // set here, and waits for the answer, also while the daemon is away. `take`
  // runs once that is DONE and its descriptors have come, before the stream can
  // break: what it takes is in the next snapshot. NOT_FOUND, ALREADY_EXISTS,
  // INVALID_ARGUMENT, FAILED_PRECONDITION: as the daemon says; UNAVAILABLE: a
  // new daemon cannot publish what an earlier one has granted.
  virtual absl::Status AskForShare(
      Device& device, v1::ClientMessage message,
      std::function<absl::Status(const v1::ShareAnswer&)> take) = 0;

  // Counts streams: an order or token of an earlier one is void.
  virtual uint64_t generation() const = 0;
  // The daemon's epoch now.
  virtual uint64_t epoch() const = 0;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_UPLINK_H_
