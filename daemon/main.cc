#include "daemon/app/run_metsd.h"

int main(int argc, char** argv) { return mets::app::RunMetsd(argc, argv); }
