#include "client/ctl/metsctl.h"

int main(int argc, char** argv) { return mets::ctl::RunMetsctl(argc, argv); }
