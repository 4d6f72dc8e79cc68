#include "octet/base/descriptor.hpp"
#include "octet/cli/command.hpp"
#include "octet/cli/stack.hpp"

int main(int argc, char** argv) {
  octet::open_standard_descriptors();
  if (const int code = octet::cli::refuse_small_stack()) return code;
  octet::cli::Program program;
  octet::cli::add_train(program);
  octet::cli::add_compare(program);
  octet::cli::add_launch(program);
  octet::cli::add_tokenize(program);
  octet::cli::add_tokenizer(program);
  octet::cli::add_eval(program);
  octet::cli::add_generate(program);
  octet::cli::add_chat(program);
  octet::cli::add_export(program);
  octet::cli::add_report(program);
  octet::cli::add_watch(program);
  octet::cli::add_top(program);
  octet::cli::add_inspect(program);
  octet::cli::add_plan(program);
  octet::cli::add_bench(program);
  octet::cli::add_doctor(program);
  octet::cli::add_config(program);
  return program.run(argc, argv);
}
