// Saves a network with its optimiser, and goes on from the file as if nothing had happened.
#include <cstdio>
#include <filesystem>

#include <pangrad/pangrad.h>
using namespace pg;

struct Trainer {
  nn::Linear layer{8, 4};
  optim::AdamW opt{parameters(layer), {.lr = 1e-2}};
  // What belongs to a checkpoint is what has a name here.
  void fields(auto&& field) { field("layer", layer), field("opt", opt); }

  float step(const Tensor& x) {
    Training on;
    Tensor loss = (layer(x) - 1).square().mean();
    opt.zero_grad();
    loss.backward();
    opt.step();
    return loss.item<float>();
  }
};

int main() {
  std::filesystem::path file = std::filesystem::temp_directory_path() / "pangrad_save_load.safetensors";
  Tensor x = Tensor::randn({16, 8});
  Trainer first;
  for (int i = 0; i < 5; i++) first.step(x);
  safe_save(state_dict(first), file, {{"steps", "5"}});

  Trainer second;
  load_state_dict(second, safe_load(file));
  for (const SafeHeader::Entry& entry : safe_load_metadata(file).tensors)
    std::printf("%-14s %s\n", entry.name.c_str(), entry.shape.str().c_str());
  std::filesystem::remove(file);

  float a = first.step(x), b = second.step(x);
  std::printf("next loss: %.6f here, %.6f from the file\n", static_cast<double>(a), static_cast<double>(b));
  return a == b ? 0 : 1;
}
