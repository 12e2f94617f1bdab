// FakeUplink: a daemon in the same thread, for tests of one device.
#ifndef METS_TESTS_CLIENT_FAKE_UPLINK_H_
#define METS_TESTS_CLIENT_FAKE_UPLINK_H_

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "client/src/device.h"
#include "client/src/uplink.h"
#include "common/base/check.h"
#include "common/device/host/host_pool_driver.h"

namespace mets::client {

// Grants chunks of real memory up to `pool`, refuses beyond it after asking
// `reclaim`, and hands out slots of one extent. Thread-safe; calls `reclaim`
// without its lock.
class FakeUplink : public Uplink {
 public:
  explicit FakeUplink(Bytes pool)
      : pool_(pool.count()), driver_(HostPoolOptions{pool, "/proc/meminfo"}) {}

  // Called when memory is missing; returns false when there is none to be had.
  std::function<bool(Bytes missing)> reclaim;

  void Send(v1::ClientMessage message) override {
    absl::MutexLock lock(&mutex_);
    if (message.has_release()) {
      const v1::Release& release = message.release();
      for (uint64_t id : release.chunk_ids()) {
        METS_CHECK(held_.erase(id) == 1) << "chunk " << id;
        free_[sizes_.at(id)].push_back(id);
        used_ -= Bytes(sizes_.at(id));
      }
      used_ -= Bytes(static_cast<int64_t>(release.orphan_bytes()));
      if (release.overdraft()) --tokens_;
    }
    sent_.push_back(std::move(message));
  }

  // The daemon is away, and back when somebody waits for it.
  std::atomic<bool> away{false};

  absl::StatusOr<Grant> Acquire(Device& device,
                                const std::vector<Bytes>& ranges,
                                absl::Time deadline, Waiting waiting) override {
    if (away && deadline == absl::InfinitePast()) {
      return absl::UnavailableError("the fake daemon is away");
    }
    away = false;
    const bool overdraft = waiting.mode != WaitMode::kPlain;
    Bytes need;
    for (Bytes range : ranges) need += range;
    for (;;) {
      Bytes missing;
      {
        absl::MutexLock lock(&mutex_);
        ++acquires_;
        missing = used_ + need - Bytes(pool_);
      }
      if (missing <= Bytes()) break;
      if (reclaim == nullptr || !reclaim(missing)) {
        return absl::ResourceExhaustedError("the fake pool is full");
      }
    }
    std::vector<uint64_t> ids;
    std::vector<uint32_t> counts;
    for (Bytes range : ranges) {
      const size_t before = ids.size();
      Fill(device, range, &ids);
      counts.push_back(ids.size() - before);
    }
    absl::StatusOr<Grant> grant = device.Hold(ids, counts);
    if (grant.ok() && overdraft) {
      grant->overdraft = true;
      grant->generation = generation_;
      absl::MutexLock lock(&mutex_);
      ++tokens_;
      token_ops_.push_back(waiting.op);
    }
    return grant;
  }

  // No test of one device shares memory.
  absl::Status AskForShare(
      Device&, v1::ClientMessage,
      std::function<absl::Status(const v1::ShareAnswer&)>) override {
    return absl::UnimplementedError("the fake daemon shares nothing");
  }

  void set_pool(Bytes pool) { pool_ = pool.count(); }

  uint64_t generation() const override { return generation_; }
  uint64_t epoch() const override { return epoch_; }
  // What was granted before are orphans; free chunks are forgotten.
  void set_epoch(uint64_t epoch) {
    epoch_ = epoch;
    absl::MutexLock lock(&mutex_);
    free_.clear();
    held_.clear();
  }

  // Grants chunks that were lent, as metsd would.
  void Regrant(Device& device, const std::vector<uint64_t>& ids) {
    v1::Regrant regrant;
    {
      absl::MutexLock lock(&mutex_);
      for (uint64_t id : ids) {
        std::vector<uint64_t>& free = free_[sizes_.at(id)];
        const auto it = std::find(free.begin(), free.end(), id);
        METS_CHECK(it != free.end()) << "chunk " << id << " is in use";
        free.erase(it);
        held_[id] = true;
        used_ += Bytes(sizes_.at(id));
        regrant.add_chunk_ids(id);
      }
    }
    device.Regrant(regrant);
  }

  // A new slot in this epoch's extent.
  v1::Slot NewSlot(Device& device, Bytes size) {
    const uint64_t extent = 1000 + epoch_;
    if (!device.KnowsExtent(extent)) {
      absl::StatusOr<UniqueFd> fd = driver_.CreateExtent(MiB(128));
      METS_CHECK_OK(fd);
      METS_CHECK_OK(device.RegisterExtent(extent, *std::move(fd), MiB(128)));
      slot_end_ = Bytes();
    }
    v1::Slot slot;
    slot.set_slot_id(++last_slot_);
    v1::SlotPiece* piece = slot.add_pieces();
    piece->set_extent_id(extent);
    piece->set_offset_bytes(slot_end_.count());
    piece->set_size_bytes(size.count());
    slot_end_ += size;
    return slot;
  }

  std::vector<Bytes> chunk_classes() { return driver_.info().chunk_classes; }
  // What devices hold, by size.
  ChunkCounts held_counts() {
    absl::MutexLock lock(&mutex_);
    ChunkCounts counts;
    for (const auto& [id, held] : held_) ++counts[sizes_.at(id)];
    return counts;
  }
  Bytes used() {
    absl::MutexLock lock(&mutex_);
    return used_;
  }
  int tokens() {
    absl::MutexLock lock(&mutex_);
    return tokens_;
  }
  int tokens_taken() { return static_cast<int>(token_ops().size()); }
  // Whose they were, in order.
  std::vector<uint64_t> token_ops() {
    absl::MutexLock lock(&mutex_);
    return token_ops_;
  }
  int acquires() {
    absl::MutexLock lock(&mutex_);
    return acquires_;
  }
  std::deque<v1::ClientMessage> TakeSent() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(sent_, {});
  }

 private:
  void Fill(Device& device, Bytes range, std::vector<uint64_t>* ids) {
    const std::vector<Bytes> classes = driver_.info().chunk_classes;
    for (auto it = classes.rbegin(); it != classes.rend(); ++it) {
      for (; range >= *it; range -= *it) {
        ids->push_back(TakeChunk(device, *it));
      }
    }
    METS_CHECK(range.is_zero());
  }

  uint64_t TakeChunk(Device& device, Bytes size) {
    uint64_t id = 0;
    {
      absl::MutexLock lock(&mutex_);
      used_ += size;
      auto& free = free_[size.count()];
      if (!free.empty()) {
        id = free.back();
        free.pop_back();
        held_[id] = true;
        return id;
      }
      id = ++last_chunk_;
      held_[id] = true;
      sizes_[id] = size.count();
    }
    HostPoolDriver maker(HostPoolOptions{size, "/proc/meminfo"});
    absl::StatusOr<UniqueFd> fd = maker.CreateChunk(size);
    METS_CHECK_OK(fd);
    METS_CHECK_OK(device.ImportChunk(id, *std::move(fd), size));
    return id;
  }

  std::atomic<int64_t> pool_;
  HostPoolDriver driver_;
  std::atomic<uint64_t> generation_{1};
  std::atomic<uint64_t> epoch_{1};
  uint64_t last_slot_ = 0;
  Bytes slot_end_;
  absl::Mutex mutex_;
  Bytes used_;
  int tokens_ = 0;
  std::vector<uint64_t> token_ops_;
  int acquires_ = 0;
  uint64_t last_chunk_ = 0;
  std::map<uint64_t, bool> held_;
  std::map<uint64_t, int64_t> sizes_;
  std::map<int64_t, std::vector<uint64_t>> free_;
  std::deque<v1::ClientMessage> sent_;
};

}  // namespace mets::client

#endif  // METS_TESTS_CLIENT_FAKE_UPLINK_H_
