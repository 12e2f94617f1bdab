// Finding: what metsctl doctor says about one thing.
#ifndef METS_CLIENT_CTL_DOCTOR_FINDING_H_
#define METS_CLIENT_CTL_DOCTOR_FINDING_H_

#include <string>
#include <vector>

namespace mets::ctl {

enum class Verdict {
  kGood,
  kHint,   // It works; it could be better, or could not be looked at.
  kWrong,  // Jobs will not run, or not with METS.
};

struct Finding {
  Verdict verdict = Verdict::kGood;
  std::string subject;  // "sockets"
  std::string text;     // What there is.
  std::string advice;   // What to do; empty when it is good.
};
using Findings = std::vector<Finding>;

// One line each, the advice below it.
std::string ToText(const Findings& findings);
std::string ToJson(const Findings& findings);
bool AnyWrong(const Findings& findings);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_DOCTOR_FINDING_H_
