// The command line of metsctl.
#ifndef METS_CLIENT_CTL_METSCTL_H_
#define METS_CLIENT_CTL_METSCTL_H_

namespace mets::ctl {

// Runs one command and returns the exit status: 0, 1 when it failed (one line
// on stderr says why), 2 for a wrong command line.
int RunMetsctl(int argc, const char* const* argv);

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_METSCTL_H_
