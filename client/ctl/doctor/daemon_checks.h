// What metsctl doctor looks at of METS itself.
#ifndef METS_CLIENT_CTL_DOCTOR_DAEMON_CHECKS_H_
#define METS_CLIENT_CTL_DOCTOR_DAEMON_CHECKS_H_

#include <string>

#include "client/ctl/doctor/finding.h"
#include "client/ctl/run_command.h"

namespace mets::ctl {

// The sockets: who may run jobs, who may administer.
Findings CheckSockets(const std::string& run_dir);

// The daemon: its version, devices, swap space, and jobs that do not answer.
// Nothing where admin.sock cannot be used.
Findings CheckDaemon(const std::string& run_dir);

// The plug-in against the TensorFlow that `python` has. `python` is a program
// (run with -c; it does not import TensorFlow).
Finding CheckPlugin(const Installation& installation,
                    const std::string& python);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_DOCTOR_DAEMON_CHECKS_H_
