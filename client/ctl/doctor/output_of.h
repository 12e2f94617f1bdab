// OutputOf: what a program prints.
#ifndef METS_CLIENT_CTL_DOCTOR_OUTPUT_OF_H_
#define METS_CLIENT_CTL_DOCTOR_OUTPUT_OF_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mets::ctl {

// Runs `words` (a program found by PATH, and its arguments) and waits for its
// end. What it printed to stdout; its stderr goes nowhere. NOT_FOUND when there
// is no such program, INTERNAL when it ended with an error.
absl::StatusOr<std::string> OutputOf(std::vector<std::string> words);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_DOCTOR_OUTPUT_OF_H_
