#include "tests/fuzz/core_program.h"

#include <ostream>
#include <sstream>

namespace mets::core {
namespace {

struct Printer {
  std::ostream& out;
  void operator()(const OpenOp& o) {
    out << "OpenOp{" << o.job << ", " << o.domain << ", " << o.limit_mib << ", "
        << o.guarantee_mib << ", " << o.priority << ", " << o.gated << ", "
        << o.device << "}";
  }
  void operator()(const AllocOp& o) {
    out << "AllocOp{" << o.s << ", " << o.kib << ", " << o.wait_ms << ", "
        << o.overdraft << ", " << o.fewest_chunks << "}";
  }
  void operator()(const TouchOp& o) {
    out << "TouchOp{" << o.s << ", " << o.b << ", " << o.write << "}";
  }
  void operator()(const FreeOp& o) {
    out << "FreeOp{" << o.s << ", " << o.b << ", " << o.cache << "}";
  }
  void operator()(const PinOp& o) {
    out << "PinOp{" << o.s << ", " << o.b << ", " << o.pinned << "}";
  }
  void operator()(const ReportOp& o) { out << "ReportOp{" << o.s << "}"; }
  void operator()(const OverdraftBackOp& o) {
    out << "OverdraftBackOp{" << o.s << "}";
  }
  void operator()(const CancelOp& o) {
    out << "CancelOp{" << o.s << ", " << o.request << "}";
  }
  void operator()(const KillOp& o) { out << "KillOp{" << o.s << "}"; }
  void operator()(const LoseOp& o) { out << "LoseOp{" << o.s << "}"; }
  void operator()(const ResumeOp& o) { out << "ResumeOp{" << o.s << "}"; }
  void operator()(const BehaveOp& o) {
    out << "BehaveOp{" << o.s << ", " << o.how << "}";
  }
  void operator()(const NeedOp& o) {
    out << "NeedOp{" << o.s << ", " << o.peak << ", " << o.persistent << ", "
        << o.step_ms << "}";
  }
  void operator()(const WantTurnOp& o) {
    out << "WantTurnOp{" << o.s << ", " << o.old << "}";
  }
  void operator()(const WaitAtGateOp& o) {
    out << "WaitAtGateOp{" << o.s << "}";
  }
  void operator()(const EndTurnOp& o) {
    out << "EndTurnOp{" << o.s << ", " << o.old << ", " << o.computed_ms << "}";
  }
  void operator()(const StepOp& o) {
    out << "StepOp{" << o.s << ", " << o.buffers << ", " << o.kib << "}";
  }
  void operator()(const PlanOp& o) { out << "PlanOp{" << o.absent << "}"; }
  void operator()(const PlanMoveOp& o) {
    out << "PlanMoveOp{" << o.s << ", " << o.b << ", " << o.leaves << "}";
  }
  void operator()(const ShareOp& o) {
    static constexpr const char* kDeeds[] = {"kPublish", "kAttach", "kDetach"};
    out << "ShareOp{" << o.s << ", " << o.b
        << ", ShareDeed::" << kDeeds[static_cast<int>(o.deed)] << ", " << o.name
        << "}";
  }
  void operator()(const GarbageOp& o) {
    out << "GarbageOp{" << o.s << ", " << o.kind << ", " << o.value << "}";
  }
  void operator()(const LimitOp& o) {
    out << "LimitOp{" << o.job << ", " << o.mib << "}";
  }
  void operator()(const CommandOp& o) {
    out << "CommandOp{" << o.job << ", " << o.what << "}";
  }
  void operator()(const FailCreationsOp& o) {
    out << "FailCreationsOp{" << o.count << "}";
  }
  void operator()(const DeliverOp& o) {
    out << "DeliverOp{" << o.s << ", " << o.count << "}";
  }
  void operator()(const PumpOp&) { out << "PumpOp{}"; }
  void operator()(const AdvanceOp& o) { out << "AdvanceOp{" << o.ms << "}"; }
  void operator()(const RestartOp& o) {
    out << "RestartOp{" << o.pool_mib << "}";
  }
  void operator()(const ReturnOp& o) { out << "ReturnOp{" << o.s << "}"; }
  void operator()(const SucceedOp&) { out << "SucceedOp{}"; }
};

}  // namespace

std::string Text(const Program& program) {
  std::ostringstream text;
  for (const Op& op : program) {
    std::visit(Printer{text}, op);
    text << ",\n";
  }
  return text.str();
}

}  // namespace mets::core
