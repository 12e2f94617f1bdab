// RequestServer: answers requests for memory.
#ifndef METS_DAEMON_CORE_REQUESTS_REQUEST_SERVER_H_
#define METS_DAEMON_CORE_REQUESTS_REQUEST_SERVER_H_

#include "absl/container/flat_hash_set.h"
#include "daemon/core/chunks/layout.h"
#include "daemon/core/chunks/retirement.h"
#include "daemon/core/state.h"
#include "daemon/core/victims/reclaimer.h"

namespace mets::core {

// Takes requests in, and serves each device's queue strictly in order: the
// overdraft token's holder, then priority, then age. Nobody passes the head,
// except those who wait for something else than memory: the token, or their own
// job's limit. A request that makes bytes move waits while its class may not
// move any (MovePacer), at most half of max_wait or of its own wait. A
// request's memory is reserved as a whole, some of it created, and then
// granted; what fails is rolled back and waits again.
//
// Each request is answered exactly once, unless its session is lost first.
//
// Not thread-safe. Borrows the state, the reclaimer and the retirement.
class RequestServer {
 public:
  RequestServer(State* state, Reclaimer* reclaimer, Retirement* retirement)
      : state_(*state), reclaimer_(*reclaimer), retirement_(*retirement) {}

  void OnAcquire(const Acquire& input);
  void OnCancel(const Cancel& input);
  void OnChunkCreated(const ChunkCreated& input);

  // Denies what has passed its deadline.
  void DenyOverdueRequests();
  // Grants what can be granted, and orders back what cannot.
  void Serve(size_t device);

 private:
  // Null when the request may wait; else what it is told.
  bool Refused(const Acquire& input, Session& session, size_t* device,
               Bytes* total);
  void ServeOne(size_t device, Request& request, bool* blocked);
  // A request that has waited with the token in vain, but pins nothing, lets
  // one go first that waits for it with buffers pinned.
  void YieldToken(Device& device);
  // While the token's holder waits in vain, an op that pins buffers and waits
  // for the token gets what is free: the holder may be waiting for those very
  // buffers.
  void LetPinnedPass(size_t device);
  bool TakeToken(size_t device, Request& request);
  // Whether it waits because its moves would slow a higher class down.
  bool HeldBack(size_t device, Request& request, const Session& session);
  bool WithinLimit(size_t device, Request& request, Job& job);
  bool CanCreate(const Device& device) const {
    return state_.now >= device.create_from;
  }
  Layout LayOut(const Device& device, const Request& request,
                const Session& session, PieceBound bound) const;
  // True when the request's memory has been reserved (or granted).
  bool Assemble(size_t device, Request& request, const Session& session);
  void MakeRoom(size_t device, Request& request, const Session& session,
                const Layout& layout);
  Bytes TurnOver(size_t device, Bytes need, DomainId domain,
                 const Layout& layout);
  const Chunk* NextToRetire(const ChunkLedger& ledger, DomainId domain,
                            bool own, Bytes need,
                            const absl::flat_hash_set<ChunkId>& keep) const;
  void Reserve(size_t device, Request& request, const Layout& layout);
  void Grant(size_t device, Request& request);
  void Wait(size_t device, Request& request, bool tight);

  State& state_;
  Reclaimer& reclaimer_;
  Retirement& retirement_;
};

// Gives back what a request has reserved; it waits again.
void RollBack(State& state, size_t device, Request& request);

// Denies a request, after rolling it back.
void Answer(State& state, size_t device, Request& request, Deny deny);

}  // namespace mets::core

#endif  // METS_DAEMON_CORE_REQUESTS_REQUEST_SERVER_H_
