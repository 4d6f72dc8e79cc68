#include "octet/cli/command.hpp"

int main(int argc, char** argv) { return octet::cli::run_program(argc, argv); }
