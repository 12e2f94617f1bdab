#include "daemon/sim/sim_client.h"

#include <algorithm>
#include <utility>

namespace mets::sim {

using steps::AccessKind;

namespace {

constexpr int kPatience = 2;  // As the client's.

}  // namespace

SimClient::SimClient(World* world, Machine* machine, const JobProgram& program,
                     SessionId session, std::string device, ToCore to_core)
    : world_(*world),
      machine_(*machine),
      program_(program),
      session_(session),
      device_(std::move(device)),
      to_core_(std::move(to_core)),
      buffers_(program.buffers.size()),
      gate_(
          world, session, device_,
          [this](core::Input input) {
            if (std::holds_alternative<core::TurnEnded>(input)) {
              Lend();
              Report();
            }
            to_core_(std::move(input));
          },
          [this] { return Stalled(); }),
      steps_(program, session, device_) {
  for (size_t b = 0; b < buffers_.size(); ++b) {
    buffers_[b].size = program.buffers[b].RoundUpTo(kSmallestChunk);
  }
}

void SimClient::Start() {
  result_.started = world_.now();
  to_core_(core::AttachDevice{session_, device_, true});
  NextOp();
}

void SimClient::NextOp() {
  const size_t repeats = result_.repeats.size();
  if (repeats < program_.repeats.size() && op_ == program_.repeats[repeats]) {
    result_.repeats.push_back(world_.now());
  }
  if (op_ == program_.ops.size()) {
    Finish();
    return;
  }
  world_.After(program_.ops[op_].gap, [this] { WatchOp(); });
}

// Ops that use no buffer are not the device's, and allocations no ops.
bool SimClient::Gated() const {
  const JobOp& op = program_.ops[op_];
  return !op.accesses.empty() && !op.only_allocates();
}

// Before the gate, which may close where a step begins.
void SimClient::WatchOp() {
  steps::PlanMoves moves;
  steps_.Begin(JobTime(), op_, &moves);
  if (steps_.BeginsStep()) EndStep();
  Plan(moves);
  BeginOp();
}

void SimClient::EndStep() {
  const auto need = meter_.StepEnds(
      world_.time(), live_, absl::Seconds(gate_.waited() + result_.stall));
  if (need.has_value()) {
    to_core_(core::StepNeed{session_, device_, need->peak, need->persistent,
                            need->step});
  }
  gate_.StepEnds();
}

void SimClient::BeginOp() {
  if (!Gated() || gate_.Enter([this] { BeginOp(); })) PassGate();
}

void SimClient::PassGate() {
  since_ = world_.now();
  waiting_ = true;
  rounds_ = 0;
  Admit();
}

void SimClient::Admit() {
  if (!waiting_ || running_ || !result_.error.empty()) return;
  bool copies = false;
  for (const steps::Access& access : program_.ops[op_].accesses) {
    Buffer& buffer = buffers_[access.buffer];
    if (buffer.phase == Phase::kLeaving) {
      buffer.copy = 0;  // It stays.
      buffer.phase = Phase::kResident;
    }
    copies |= buffer.phase == Phase::kReturning;
  }
  if (tokens_ > 0) Pin();
  std::vector<uint32_t> returning;
  if (!FindMemory(&returning)) return;
  Pin();
  for (uint32_t b : returning) {
    copies = true;
    Chunks chunks = std::move(buffers_[b].chunks);
    buffers_[b].chunks.clear();
    Restore(b, std::move(chunks));
  }
  if (!copies) RunOp();
  PlannedRestores();
  ReturnSome();
}

void SimClient::Pin() {
  for (const steps::Access& access : program_.ops[op_].accesses) {
    Buffer& buffer = buffers_[access.buffer];
    if (buffer.pinned || buffer.phase != Phase::kResident) continue;
    buffer.pinned = true;
    buffer.last_use = world_.now();
    Change(access.buffer);
  }
}

// Takes chunks for everything that the op lacks, or asks for all of it. It
// keeps nothing while it waits, or two jobs could wait for each other, unless
// it has the token.
bool SimClient::FindMemory(std::vector<uint32_t>* returning) {
  std::vector<uint32_t> lacking, missing;
  for (const steps::Access& access : program_.ops[op_].accesses) {
    Buffer& buffer = buffers_[access.buffer];
    if (buffer.phase != Phase::kSwapped && buffer.phase != Phase::kNone) {
      continue;
    }
    lacking.push_back(access.buffer);
    if (buffer.chunks.empty() && !idle_.Take(buffer.size, &buffer.chunks)) {
      missing.push_back(access.buffer);
    }
  }
  lacks_memory_ = !missing.empty();
  if (lacks_memory_) {
    if (tokens_ == 0) {
      missing = lacking;
      for (uint32_t b : lacking) {
        idle_.Put(buffers_[b].chunks);
        buffers_[b].chunks.clear();
      }
    }
    Ask(std::move(missing));
    return false;
  }
  for (uint32_t b : lacking) {
    Buffer& buffer = buffers_[b];
    if (buffer.phase == Phase::kSwapped) {
      returning->push_back(b);
      continue;
    }
    buffer.phase = Phase::kResident;
    buffer.dirty = true;
    live_ += buffer.size;
    meter_.NoteLive(live_);
    Change(b);
  }
  return true;
}

bool SimClient::IsWithinPlan(const std::vector<uint32_t>& buffers) const {
  Bytes bytes = resident();
  for (uint32_t b : buffers) bytes += buffers_[b].size;
  return bytes <= plan_budget_;
}

void SimClient::Ask(std::vector<uint32_t> buffers) {
  if (request_) return;
  // Memory is on its way, unless there should be enough.
  if (plan_evicts_ > 0 && !IsWithinPlan(buffers)) return;
  request_ = RequestId(++last_request_);
  asked_ = world_.now();
  ++result_.requests;
  // So that the core spares what the op uses.
  for (const steps::Access& access : program_.ops[op_].accesses) {
    buffers_[access.buffer].last_use = world_.now();
    if (buffers_[access.buffer].phase != Phase::kNone) Change(access.buffer);
  }
  Report();
  core::Acquire acquire;
  acquire.session = session_;
  acquire.request = *request_;
  acquire.device = device_;
  for (uint32_t b : buffers) acquire.ranges.push_back(buffers_[b].size);
  asked_for_ = std::move(buffers);
  acquire.wait = absl::InfiniteDuration();
  acquire.overdraft = rounds_++ >= kPatience;
  acquire.pinned = tokens_ > 0;
  to_core_(std::move(acquire));
}

void SimClient::RunOp() {
  running_ = true;
  waiting_ = false;
  result_.stall += world_.now() - since_;
  machine_.processor.Run(session_, program_.ops[op_].busy, [this] { EndOp(); });
}

void SimClient::EndOp() {
  running_ = false;
  const JobOp& op = program_.ops[op_];
  for (const steps::Access& access : op.accesses) {
    Buffer& buffer = buffers_[access.buffer];
    buffer.pinned = false;
    if (access.kind != AccessKind::kRead) {
      buffer.dirty = true;
      buffer.slot = SlotId();
    }
    Change(access.buffer);
  }
  result_.peak = std::max(result_.peak, resident() + program_.small_peak);
  steps::PlanMoves moves;
  steps_.End(JobTime(), op_, &moves);
  GiveTokensBack();
  Plan(moves);
  if (Gated()) gate_.Leave();
  for (uint32_t b : op.frees) Free(b);  // Programs do so between ops.
  ++op_;
  NextOp();
}

void SimClient::Free(uint32_t b) {
  Buffer& buffer = buffers_[b];
  buffer.copy = 0;
  if (buffer.phase == Phase::kResident || buffer.phase == Phase::kLeaving) {
    idle_.Put(buffer.chunks);
    buffer.chunks.clear();
  }
  if (buffer.phase != Phase::kNone) live_ -= buffer.size;
  buffer.phase = Phase::kNone;
  buffer.freed = true;
  Change(b);
}

void SimClient::Finish() {
  result_.gate = gate_.waited();
  result_.shared = machine_.processor.shared(session_);
  result_.slowed = machine_.processor.slowed(session_);
  result_.ended = world_.now();
  result_.repeats.push_back(world_.now());
  result_.done = true;
  to_core_(core::SessionEnded{session_});
}

}  // namespace mets::sim
