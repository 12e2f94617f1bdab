#include "tf_allocator/tf/op_announcer.h"

#include <cstring>
#include <string>

namespace mets {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;

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
  const bool variants =
      HasVariant(kernel.input_types()) || HasVariant(kernel.output_types());
  const OpKind kind = variants ? KindOfVariantOp(type) : KindOfOp(type);
  return std::make_unique<KernelState>(&kernel, IdentityOf(kernel), kind,
                                       VariableUseOfOp(type), type);
}

// TensorFlow runs an op that Python calls as a graph of this op alone, which it
// names like its type. (Ops of larger graphs may have such names, too.)
bool IsOnlyOp(const OpKernel& kernel) {
  return kernel.name() == kernel.type_string();
}

// Adds METS' text to the error that TensorFlow made of a failed allocation.
void Explain(const OpScope& scope, OpKernelContext* context) {
  const absl::Status& status = context->status();
  if (!scope.failed() || !absl::IsResourceExhausted(status)) return;
  // SetStatus keeps the first error.
  const_cast<absl::Status&>(status) = absl::ResourceExhaustedError(
      std::string(status.message()) + "\nMETS: " + scope.failure());
}

}  // namespace

KernelState* OpAnnouncer::StateOf(const OpKernel& kernel) {
  return table_->Get(&kernel, IdentityOf(kernel),
                     [&kernel] { return MakeState(kernel); });
}

OpAnnouncer::How OpAnnouncer::Resolve(const KernelState& state,
                                      OpKernelContext* context,
                                      Inputs* inputs) {
  if (state.kind == OpKind::kPass || memory_->forked()) return How::kPlain;
  if (state.kind == OpKind::kReturn) {
    return looks_ ? How::kReturn : How::kPlain;
  }
  if (state.kind == OpKind::kKeep || state.kind == OpKind::kCollect) {
    return How::kKeep;
  }
  if (state.kind == OpKind::kPassElements) return How::kOp;
  // In a graph, reading a variable only hands on its tensor.
  if (state.kind == OpKind::kReadVariable &&
      context->params()->call_frame != nullptr && !ReadingCopies(context)) {
    return looks_ && IsOnlyOp(context->op_kernel()) ? How::kLook : How::kPlain;
  }
  ResolveInputs(memory_, state, context, inputs);
  return inputs->keeps ? How::kKeep : How::kOp;
}

bool OpAnnouncer::Begin(const KernelState& state, OpKernelContext* context,
                        Inputs* inputs, OpScope* scope) {
  constexpr int kTries = 3;
  const uint64_t signature = InputSignature(state, context);
  std::string error;
  for (int i = 0; i < kTries; ++i) {
    switch (scope->Begin(&inputs->accesses, signature, &error)) {
      case OpScope::BeginResult::kOk:
        SettleVariables(memory_, inputs->accesses, context->step_id());
        SettleInputs(memory_, state.kind, context);
        return true;
      case OpScope::BeginResult::kFailed:
        FailForMemory(context, error);
        return false;
      case OpScope::BeginResult::kStale:
        // Another op has replaced a variable's tensor meanwhile.
        inputs->accesses.Clear();
        ResolveInputs(memory_, state, context, inputs);
    }
  }
  return true;
}

void OpAnnouncer::Finish(OpKernelContext* context, const Inputs& inputs,
                         OpScope* scope) {
  if (scope->idle() && !scope->failed()) return;
  SettleOutputs(memory_, scope, inputs.accesses, context);
  // What an asynchronous op allocates is not followed.
  if (scope->allocated() ||
      context->params()->op_kernel->AsAsync() != nullptr) {
    SettleNewVariables(memory_, scope, context);
  }
  HoldLookedAt(context);
  Explain(*scope, context);
}

void OpAnnouncer::HoldLookedAt(OpKernelContext* context) {
  if (looks_ && context->params()->call_frame == nullptr) {
    HoldOutputs(memory_, context);
  }
}

}  // namespace mets
