// Fine-tunes the model of a Hugging Face folder in FP8: fine_tune MODEL TOKENS, where TOKENS is a folder of `octet tokenize --model MODEL`.
#include <cstdio>

#include "octet/train/run/trainer.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: fine_tune MODEL TOKENS\n"), 2;
  try {
    octet::train::RunConfig config;
    config.model.init = argv[1], config.data.path = argv[2], config.name = "tuned";
    config.recipe.recipe = "current", config.optim.learning_rate = 1e-5;
    config.train.steps = 20, config.data.sequence_length = 128;
    const octet::train::Corpus corpus(config.data, config.train, config.model.shape().vocabulary);
    octet::train::Trainer trainer(config, corpus, {});
    const octet::train::Outcome outcome = trainer.run();
    std::printf("%s/weights: loss %.4f\n", outcome.folder.c_str(), outcome.end.train_loss);
  } catch (const octet::Error& e) {
    return std::fprintf(stderr, "fine_tune: %s\n", e.what()), int(e.code());
  }
}
