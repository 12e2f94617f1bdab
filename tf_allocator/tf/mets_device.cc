#include "tf_allocator/tf/mets_device.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tf_allocator/tf/access_resolver.h"

namespace mets {
namespace {

using tensorflow::AsyncOpKernel;
using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::ThreadPoolDevice;

// The virtual table's address tells kernel classes apart, so that a kernel at
// the address of one that was destroyed is not taken for it.
uint64_t IdentityOf(const OpKernel& kernel) {
  uint64_t identity;
  std::memcpy(&identity, &kernel, sizeof(identity));
  return identity;
}

bool HasVariant(const tensorflow::DataTypeVector& types) {
  for (tensorflow::DataType type : types) {
    if (tensorflow::BaseType(type) == tensorflow::DT_VARIANT) return true;
  }
  return false;
}

std::unique_ptr<KernelState> MakeState(const OpKernel& kernel) {
  const std::string& type = kernel.type_string();
  OpKind kind = KindOfOp(type);
  if (kind == OpKind::kCompute &&
      (HasVariant(kernel.input_types()) || HasVariant(kernel.output_types()))) {
    kind = OpKind::kKeep;
  }
  return std::make_unique<KernelState>(&kernel, IdentityOf(kernel), kind,
                                       VariableUseOfOp(type), type);
}

// Adds METS' text to the error that TensorFlow made of a failed allocation.
void Explain(const OpScope& scope, OpKernelContext* context) {
  const absl::Status& status = context->status();
  if (!scope.failed() || !absl::IsResourceExhausted(status)) return;
  // SetStatus keeps the first error.
  const_cast<absl::Status&>(status) = absl::ResourceExhaustedError(
      std::string(status.message()) + "\nMETS: " + scope.failure());
}

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

}  // namespace

MetsDevice::MetsDevice(const tensorflow::SessionOptions& options,
                       const std::string& name,
                       const tensorflow::DeviceLocality& locality,
                       tensorflow::Allocator* allocator, DeviceMemory* memory,
                       KernelTable* table)
    : ThreadPoolDevice(options, name, tensorflow::Bytes(256 << 20), locality,
                       allocator),
      memory_(memory),
      table_(table) {}

KernelState* MetsDevice::StateOf(const OpKernel& kernel) {
  return table_->Get(&kernel, IdentityOf(kernel),
                     [&kernel] { return MakeState(kernel); });
}

MetsDevice::How MetsDevice::Resolve(const KernelState& state,
                                    OpKernelContext* context, Inputs* inputs) {
  if (state.kind == OpKind::kPass || memory_->forked()) return How::kPlain;
  if (state.kind == OpKind::kKeep) return How::kKeep;
  // In a graph, reading a variable only hands on its tensor. Outside graphs
  // (where there is no call frame) Python may look at it next.
  if (state.kind == OpKind::kReadVariable &&
      context->params()->call_frame != nullptr && !ReadingCopies(context)) {
    return How::kPlain;
  }
  ResolveInputs(*memory_, state, context, inputs);
  return inputs->keeps ? How::kKeep : How::kOp;
}

bool MetsDevice::Begin(const KernelState& state, OpKernelContext* context,
                       Inputs* inputs, OpScope* scope) {
  constexpr int kTries = 3;
  const uint64_t signature = InputSignature(context);
  std::string error;
  for (int i = 0; i < kTries; ++i) {
    switch (scope->Begin(&inputs->accesses, signature, &error)) {
      case OpScope::BeginResult::kOk:
        SettleVariables(memory_, inputs->accesses);
        SettleInputs(memory_, context, /*kept=*/false);
        return true;
      case OpScope::BeginResult::kFailed:
        context->SetStatus(absl::ResourceExhaustedError(
            "METS has no memory for the op " + context->op_kernel().name() +
            ": " + error));
        return false;
      case OpScope::BeginResult::kStale:
        // Another op has replaced a variable's tensor meanwhile.
        inputs->accesses.Clear();
        ResolveInputs(*memory_, state, context, inputs);
    }
  }
  return true;
}

void MetsDevice::Finish(OpKernelContext* context, const Inputs& inputs,
                        OpScope* scope) {
  if (scope->idle() && !scope->failed()) return;
  SettleOutputs(memory_, scope, inputs.accesses, context);
  if (scope->allocated()) NoteVariables(*memory_, scope, context);
  Explain(*scope, context);
}

void MetsDevice::Compute(OpKernel* kernel, OpKernelContext* context) {
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
    ThreadPoolDevice::Compute(kernel, context);
    scope.Leave();
    if (scope.idle() && !scope.failed()) return;
    Finish(context, inputs, &scope);
    scope.End();
    return;
  }
  if (how == How::kKeep) SettleInputs(memory_, context, /*kept=*/true);
  ThreadPoolDevice::Compute(kernel, context);
  if (how == How::kKeep) SettleKeptOutputs(memory_, context);
}

void MetsDevice::ComputeAsync(AsyncOpKernel* kernel, OpKernelContext* context,
                              AsyncOpKernel::DoneCallback done) {
  KernelState* state = StateOf(*kernel);
  if (state->kind == OpKind::kPass || memory_->forked()) {
    ThreadPoolDevice::ComputeAsync(kernel, context, std::move(done));
    return;
  }
  auto run = std::make_shared<AsyncRun>(memory_, state);
  const How how = Resolve(*state, context, &run->inputs);
  if (how != How::kOp) {
    SettleInputs(memory_, context, /*kept=*/true);
    auto finish = [this, context, done = std::move(done)] {
      SettleKeptOutputs(memory_, context);
      done();
    };
    ThreadPoolDevice::ComputeAsync(kernel, context, std::move(finish));
    return;
  }
  if (!Begin(*state, context, &run->inputs, &run->scope)) {
    done();
    return;
  }
  run->scope.Enter();
  auto finish = [this, context, run, done = std::move(done)] {
    Finish(context, run->inputs, &run->scope);
    run->Drop();
    done();
  };
  ThreadPoolDevice::ComputeAsync(kernel, context, std::move(finish));
  run->scope.Leave();
  run->scope.Detach();
  run->Drop();
}

void MetsDevice::CopyTensorInSameDevice(
    const Tensor* input, Tensor* output,
    const tensorflow::DeviceContext* device_context,
    tensorflow::StatusCallback done) {
  const mets_access accesses[] = {
      {tensorflow::DMAHelper::base(input), 0, METS_READ},
      {tensorflow::DMAHelper::base(output), 0, METS_WRITE}};
  mets_op* op = nullptr;
  const bool ours = !memory_->forked() && (memory_->Owns(accesses[0].address) ||
                                           memory_->Owns(accesses[1].address));
  if (ours && memory_->api().op_begin(memory_->device(), nullptr, accesses, 2,
                                      0, &op) == METS_OUT_OF_MEMORY) {
    done(absl::ResourceExhaustedError(memory_->api().last_error()));
    return;
  }
  // The copy is done when the base class has returned.
  ThreadPoolDevice::CopyTensorInSameDevice(input, output, device_context,
                                           std::move(done));
  if (ours) memory_->api().op_end(op, nullptr);
}

}  // namespace mets
