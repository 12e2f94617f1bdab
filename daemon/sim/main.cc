#include "daemon/sim/sim_command.h"

int main(int argc, char** argv) { return mets::sim::RunMetsSim(argc, argv); }
