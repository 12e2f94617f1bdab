// Announces kernels' accesses to METS, for the devices of all kinds.
#ifndef METS_TF_ALLOCATOR_TF_OP_ANNOUNCER_H_
#define METS_TF_ALLOCATOR_TF_OP_ANNOUNCER_H_

#include <atomic>
#include <memory>
#include <utility>

#include "tensorflow/core/framework/op_kernel.h"
#include "tf_allocator/core/device_memory.h"
#include "tf_allocator/core/kernel_table.h"
#include "tf_allocator/core/op_scope.h"
#include "tf_allocator/tf/access_resolver.h"
#include "tf_allocator/tf/looked_at_variables.h"

namespace mets {

// Runs kernels between the beginning and the end of their ops. A device calls
// Compute and ComputeAsync from its own functions of these names, with what its
// base class would do as `run`. Thread-safe. `memory` and `table` must outlive
// it (and outlive all tensors: they live until the process ends).
//
// An op that METS has no memory for fails with ResourceExhausted and METS'
// text.
class OpAnnouncer {
 public:
  // `looks`: who runs a program may look at what an op outside of graphs, or a
  // graph, has returned, without an op: Python at host memory.
  OpAnnouncer(DeviceMemory* memory, KernelTable* table, bool looks)
      : memory_(memory), table_(table), looks_(looks), looked_at_(memory) {}

  // `run` runs the kernel.
  template <typename Run>
  void Compute(tensorflow::OpKernel* kernel,
               tensorflow::OpKernelContext* context, const Run& run) {
    KernelState* state = StateOf(*kernel);
    Inputs inputs;
    const How how = Resolve(*state, context, &inputs);
    if (how == How::kOp) {
      OpScope scope(memory_, state);
      if ((!inputs.accesses.empty() || state->allocates()) &&
          !Begin(*state, context, &inputs, &scope)) {
        return;
      }
      scope.Enter();
      run();
      scope.Leave();
      if (scope.idle() && !scope.failed()) {
        if (state->kind == OpKind::kPassElements) HoldLookedAt(context);
        return;
      }
      Finish(context, inputs, &scope);
      scope.End();
      return;
    }
    if (how == How::kKeep) SettleInputs(memory_, OpKind::kKeep, context);
    if (how == How::kReturn) {
      HoldReturned(memory_, context);
      looked_at_.SettleSome();
    }
    if (how != How::kPlain && !context->status().ok()) return;
    run();
    if (how == How::kKeep) SettleKeptOutputs(memory_, context);
    if (how == How::kLook) NoteLookedAt(context, &looked_at_);
  }

  // `run(done)` starts the kernel, which calls `done` at its end.
  template <typename Run>
  void ComputeAsync(tensorflow::AsyncOpKernel* kernel,
                    tensorflow::OpKernelContext* context,
                    tensorflow::AsyncOpKernel::DoneCallback done,
                    const Run& run) {
    KernelState* state = StateOf(*kernel);
    if (state->kind == OpKind::kPass || memory_->forked()) {
      return run(std::move(done));
    }
    auto async = std::make_shared<AsyncRun>(memory_, state);
    const How how = Resolve(*state, context, &async->inputs);
    if (how != How::kOp) {
      SettleInputs(memory_, OpKind::kKeep, context);
      if (!context->status().ok()) return done();
      const bool collects = state->kind == OpKind::kCollect;
      if (collects) memory_->CollectiveBegins();
      return run([this, context, collects, done = std::move(done)] {
        SettleKeptOutputs(memory_, context);
        if (collects) memory_->CollectiveEnds();
        done();
      });
    }
    if (!Begin(*state, context, &async->inputs, &async->scope)) return done();
    async->scope.Enter();
    run([this, context, async, done = std::move(done)] {
      Finish(context, async->inputs, &async->scope);
      async->Drop();
      done();
    });
    async->scope.Leave();
    async->scope.Detach();
    async->Drop();
  }

 private:
  enum class How { kPlain, kKeep, kLook, kReturn, kOp };

  // A run of an asynchronous kernel. It ends for METS when the kernel's
  // ComputeAsync has returned and its callback has been called.
  struct AsyncRun {
    AsyncRun(DeviceMemory* memory, KernelState* state)
        : scope(memory, state, /*tracks=*/false) {}
    void Drop() {
      if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) scope.End();
    }
    std::atomic<int> left{2};
    Inputs inputs;
    OpScope scope;
  };

  KernelState* StateOf(const tensorflow::OpKernel& kernel);
  How Resolve(const KernelState& state, tensorflow::OpKernelContext* context,
              Inputs* inputs);
  bool Begin(const KernelState& state, tensorflow::OpKernelContext* context,
             Inputs* inputs, OpScope* scope);
  void Finish(tensorflow::OpKernelContext* context, const Inputs& inputs,
              OpScope* scope);
  void HoldLookedAt(tensorflow::OpKernelContext* context);

  DeviceMemory* const memory_;
  KernelTable* const table_;
  const bool looks_;
  LookedAtVariables looked_at_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_OP_ANNOUNCER_H_
