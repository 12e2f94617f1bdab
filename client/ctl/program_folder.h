// ProgramFolder: where this program lies.
#ifndef METS_CLIENT_CTL_PROGRAM_FOLDER_H_
#define METS_CLIENT_CTL_PROGRAM_FOLDER_H_

#include <string>

namespace mets::ctl {

// Of the running program's file, without a slash at the end; empty when it
// cannot be told.
std::string ProgramFolder();

}  // namespace mets::ctl

#endif  // METS_CLIENT_CTL_PROGRAM_FOLDER_H_
