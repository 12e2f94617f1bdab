// What a job does, in words.
#ifndef METS_CLIENT_CTL_PHASE_WORDS_H_
#define METS_CLIENT_CTL_PHASE_WORDS_H_

#include <string>

namespace mets::ctl {

// Of JobStatus::phase; a phase that is not known is said as it is.
inline std::string PhaseWords(const std::string& phase) {
  if (phase == "waits_for_turn") return "waits for its turn";
  if (phase == "waits_for_memory") return "waits for memory";
  if (phase == "silent") return "does not answer";
  return phase;
}

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_PHASE_WORDS_H_
