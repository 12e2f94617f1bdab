// OwnFolder: where a plug-in finds what is installed beside it.
#ifndef METS_CLIENT_LOADER_OWN_FOLDER_H_
#define METS_CLIENT_LOADER_OWN_FOLDER_H_

#include <string>

namespace mets {

// The folder of the shared library (or program) that this function is linked
// into; "." when it was opened by its name alone, "" when it is not known.
std::string OwnFolder();

}  // namespace mets

#endif  // METS_CLIENT_LOADER_OWN_FOLDER_H_
