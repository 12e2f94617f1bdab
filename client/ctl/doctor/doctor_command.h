// `metsctl doctor` and `metsctl report`.
#ifndef METS_CLIENT_CTL_DOCTOR_DOCTOR_COMMAND_H_
#define METS_CLIENT_CTL_DOCTOR_DOCTOR_COMMAND_H_

#include <string>

#include "absl/status/status.h"
#include "client/ctl/doctor/finding.h"

namespace mets::ctl {

struct DoctorOptions {
  std::string python = "python3";
  bool json = false;
};

// Looks at everything.
Findings Examine(const std::string& run_dir, const std::string& python);

// Prints what is good, what is wrong and what to do. FAILED_PRECONDITION, with
// the number, when something is wrong.
absl::Status DoctorCommand(const DoctorOptions& options,
                           const std::string& run_dir);

struct ReportOptions {
  std::string out;     // Empty: mets-report-TIME.tar.gz in this folder.
  std::string config;  // Empty: the one installed.
  std::string python = "python3";
};

// Writes a compressed archive for whoever is to help: status, events, doctor,
// versions, configuration, METS_… variables, memory, the log's end. What cannot
// be had is noted in it. It has names of jobs and users' numbers, but no data
// and no environment of others.
absl::Status ReportCommand(const ReportOptions& options,
                           const std::string& run_dir);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_DOCTOR_DOCTOR_COMMAND_H_
