// FakeCluster: a Core with fake client processes and fake memory around it.
#ifndef METS_TESTS_DAEMON_CORE_FAKE_SESSIONS_H_
#define METS_TESTS_DAEMON_CORE_FAKE_SESSIONS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/bytes.h"
#include "common/base/ids.h"
#include "daemon/core/core.h"

namespace mets::core {

constexpr char kDevice[] = "host0";

// What a buffer's bytes are: who wrote them, and which version.
struct Content {
  SessionId session;
  BufferId buffer;
  uint64_t version = 0;
  bool operator==(const Content& other) const {
    return session == other.session && buffer == other.buffer &&
           version == other.version;
  }
};

struct FakeBuffer {
  BufferId id;
  Bytes size;
  bool resident = true;
  bool clean = false;
  bool pinned = false;
  Mobility mobility = Mobility::kMovable;
  Slot slot;  // Where the bytes are, or are as well (clean).
  std::vector<ChunkRef> chunks;
  Bytes orphan;  // Resident in chunks of an earlier epoch.
  uint64_t version = 1;
  absl::Time last_use;
  uint32_t logical = 0;  // As reported.
};

// A share that a session has.
struct FakeShare {
  ShareId id;
  Epoch epoch;
  Bytes size;
  std::vector<ChunkRef> chunks;  // None: of an earlier epoch.
};

// A client process that obeys orders, unless it is told to misbehave. Its
// messages travel in order, and arrive when the cluster delivers them.
struct FakeSession {
  SessionId id;
  DomainId domain;
  std::string job;
  bool alive = true;
  bool connected = true;
  bool refused = false;
  std::string refusal;
  bool gated = false;  // Its buffers are held.
  std::string device;  // That it uses.

  std::map<BufferId, FakeBuffer> buffers;
  std::vector<ChunkRef> cache;
  std::set<ChunkId> lent;
  std::set<ChunkId> known;
  std::set<ExtentId> extents;
  std::set<BufferId> changed;
  uint64_t last_buffer = 0;
  uint64_t last_request = 0;
  // Requests without an answer: the buffer that is allocated (not in the table
  // yet) or restored.
  struct Wanted {
    BufferId buffer;
    Bytes size;
    bool overdraft = false;
  };
  std::map<RequestId, Wanted> requests;
  std::vector<Deny> denials;
  std::map<std::string, FakeShare> shares;  // That it has, by name.
  // Without an answer: the buffer that is to be a share, and names.
  struct Publishing {
    PublishShare input;
    FakeBuffer buffer;
  };
  std::map<RequestId, Publishing> publishing;
  std::map<RequestId, std::string> attaching;
  std::vector<ShareAnswer> share_answers;
  std::vector<DeviceReady> ready;
  int overdraft = 0;
  bool tight = false;
  std::vector<std::string> notices;
  Bytes limit;
  GateOrder gate;                  // The last one; open without any.
  OrderId gate_sent;               // Of the last one that the core has sent.
  bool ready_behind_gate = false;  // Its device became ready behind an order.
  bool waits = false;              // An op waits at its closed gate...
  OrderId told_waits;              // ...as it has told about this order.
  Totals totals;                   // As reported.
  int evicted = 0;                 // Buffers, so far.
  int clean_evictions = 0;         // Of them, without a copy.
  int trims = 0;
  std::optional<PlanOrder> plan;  // That it follows.
  int plans = 0;                  // Orders to follow one, so far.

  // Misbehaviour.
  bool silent = false;    // Reads nothing.
  bool skips = false;     // Answers SKIPPED.
  bool fails = false;     // Answers FAILED, after a half-made copy.
  bool keeps = false;     // Keeps what it is to forget.
  bool computes = false;  // Never says that its turn has ended.
  bool planless = false;  // Follows no plan.
  bool lends = true;      // Its cache, when its turn ends.

  std::deque<Input> to_core;
  std::deque<SessionAction> inbox;

  Bytes held() const;  // In chunks and orphans.
};

class FakeCluster {
 public:
  explicit FakeCluster(CoreConfig config, std::string policy = "lru");

  static CoreConfig Config(Bytes pool, Bytes swap);

  // --- sessions --------------------------------------------------------------
  struct Wish {
    Wish(uint64_t domain_number = 1, Bytes limit_wish = Bytes(),
         Bytes guarantee_wish = Bytes(), int priority_wish = 0,
         bool is_gated = false, std::string device_name = "host0")
        : domain(domain_number),
          limit(limit_wish),
          guarantee(guarantee_wish),
          priority(priority_wish),
          gated(is_gated),
          device(std::move(device_name)) {}
    uint64_t domain;
    Bytes limit, guarantee;
    int priority;
    bool gated;
    std::string device;
  };
  // Opens a session and attaches its device.
  FakeSession& Open(const std::string& job) { return Open(job, Wish()); }
  FakeSession& Open(const std::string& job, const Wish& wish);
  void Kill(FakeSession& session);
  // The stream breaks; messages on their way are lost.
  void Lose(FakeSession& session);
  // The stream is back, in the same epoch.
  void Resume(FakeSession& session);
  // A new core after this one's crash; sessions are `lost` and come back by
  // Return. Records name what each holds.
  void RestartCore(CoreConfig config);
  void Return(FakeSession& session);
  // A new core takes over from this one, which has been killed: sessions come
  // back by Resume; what was on its way is lost.
  void SucceedCore();

  // --- what a process does ---------------------------------------------------
  // Asks for a buffer; it is there once the request has been granted.
  BufferId Alloc(FakeSession& session, Bytes size,
                 absl::Duration wait = absl::Seconds(60),
                 bool overdraft = false, bool pinned = false, uint64_t op = 0,
                 bool fewest_chunks = false);
  // Uses a buffer: restores it first when needed.
  void Touch(FakeSession& session, BufferId buffer, bool write);
  // Frees a buffer; its chunks stay cached, or go back at once.
  void Free(FakeSession& session, BufferId buffer, bool cache);
  void Pin(FakeSession& session, BufferId buffer, bool pinned);
  // A buffer that an op uses, as the core knows.
  BufferId AllocPinned(FakeSession& session, Bytes size) {
    const BufferId buffer = Alloc(session, size);
    Pump();
    Pin(session, buffer, true);
    Report(session);
    return buffer;
  }
  void GiveOverdraftBack(FakeSession& session);
  // An op comes to the gate and, if that is closed, waits there.
  void WaitAtGate(FakeSession& session);
  // Evicts a buffer to the slot that the session's plan has for a logical one,
  // and brings one back into its cached chunks, as far as that is possible.
  void EvictByPlan(FakeSession& session, BufferId buffer, uint32_t logical);
  void RestoreByPlan(FakeSession& session, BufferId buffer);
  // Gives its cache back for the time until its next turn.
  void Lend(FakeSession& session);
  // Asks to make a buffer a share; it is one, or cached, once that has been
  // answered. Nothing happens when the buffer cannot be one.
  void Publish(FakeSession& session, BufferId buffer, const std::string& name,
               const std::string& checksum = "");
  void AttachShare(FakeSession& session, const std::string& name,
                   const std::string& checksum = "", Bytes bytes = Bytes());
  void DetachShare(FakeSession& session, const std::string& name);
  // Tells the core what has changed.
  void Report(FakeSession& session);
  void Send(FakeSession& session, Input input);

  // --- time and messages -----------------------------------------------------
  // Delivers one message; false when there was none.
  bool DeliverToCore(FakeSession& session);
  bool DeliverToSession(FakeSession& session);
  bool DeliverMemory();
  // Delivers everything until nothing moves.
  void Pump();
  // Lets time pass, with every Tick and its consequences.
  void Advance(absl::Duration time);
  // Input straight to the core.
  void Step(const Input& input);

  // What is to be planned; tests answer it.
  std::deque<PlanTask> plan_tasks;
  void AnswerPlan(absl::StatusOr<steps::StepPlan> plan);

  // Fails the next creations.
  int failing_creations = 0;
  bool manual_memory = false;  // Pump leaves memory actions undone.
  size_t WaitingMemoryActions() const { return memory_.size(); }

  Core& core() { return *core_; }
  absl::Time now() const { return now_; }
  std::map<SessionId, std::unique_ptr<FakeSession>>& sessions() {
    return sessions_;
  }
  DeviceStatus device() { return core_->GetStatus().devices[0]; }
  JobStatus job(const std::string& name);
  // Answers to operators' commands, and whose processes they end.
  std::vector<CommandDone> commands;
  std::vector<EndProcesses> ends;
  std::vector<JobEnded> ended_jobs;
  // Answers to SetJobLimit.
  std::vector<JobLimitSet> limits;
  // What the core has said, if its configuration asks for it.
  std::vector<Event> events;
  // Bytes of chunks that exist.
  Bytes created() const;

 private:
  // What one forgets with its stream.
  static void Disconnect(FakeSession& session);
  void Do(const SessionAction& action);
  void Do(const MemoryAction& action);
  void Do(const OperatorAction& action);
  void Do(const PlanTask& task) { plan_tasks.push_back(task); }
  void Obey(FakeSession& s, const SessionAction& action);
  void OnGrant(FakeSession& s, const Grant& grant);
  void OnRegrant(FakeSession& s, const Regrant& regrant);
  void OnDeny(FakeSession& s, const Deny& deny);
  void OnShare(FakeSession& s, const ShareAnswer& answer);
  void CheckShare(const FakeSession& s, const ShareAnswer& answer);
  Bytes Orphans(const DeviceConfig& device) const;
  void OnEvict(FakeSession& s, const EvictOrder& order);
  BufferResult EvictOne(FakeSession& s, const EvictOrder& order,
                        const EvictOrder::Candidate& candidate, Bytes* given);
  void OnPlan(FakeSession& s, const PlanOrder& order);
  void OnTrim(FakeSession& s, const TrimOrder& order);
  void OnForget(FakeSession& s, const ForgetOrder& order);
  void OnRefuse(FakeSession& s, const Refuse& refuse);
  void CheckChunkUse(const FakeSession& s,
                     const std::vector<ChunkRef>& granted);
  void CheckHeld(const FakeSession& s, const EvictOrder& order);
  void Write(const Slot& slot, Bytes size, const Content& content);
  void CheckRead(const Slot& slot, Bytes size, const Content& content);
  BufferReport Describe(const FakeBuffer& buffer) const;
  Bytes CachedBytes(const FakeSession& s) const;
  void SendSnapshot(FakeSession& s);

  struct FakeChunk {
    DeviceId device;
    Bytes size;
    bool ready = false;
    SessionId holder;
    DomainId domain;  // Of its first holder.
    std::set<SessionId> sharers;
  };

  CoreConfig config_;
  const std::string policy_;
  std::unique_ptr<Core> core_;
  KeptState kept_;  // By the core's changes.
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::map<SessionId, std::unique_ptr<FakeSession>> sessions_;
  uint64_t last_session_ = 0;
  std::map<ChunkId, FakeChunk> chunks_;
  std::map<ExtentId, Bytes> extents_;
  // By extent and 64-KiB piece. Older epochs' extents stay readable.
  std::map<std::pair<uint64_t, int64_t>, Content> swap_;
  std::deque<MemoryAction> memory_;
  uint64_t epoch_ = 1;
};

}  // namespace mets::core

#endif  // METS_TESTS_DAEMON_CORE_FAKE_SESSIONS_H_
