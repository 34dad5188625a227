// Embedding, loss, sums, the optimizer, and the plain operations on elements.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "kernel_check/checks.h"

namespace shardplan::validator {
namespace {

void check_table(Laboratory& lab, DType dtype, const char* shape, std::int64_t batch,
                 std::int64_t sequence, std::int64_t width, std::int32_t vocabulary,
                 std::int32_t used, std::int32_t elsewhere = 0) {
  const std::int64_t rows = batch * sequence;
  const RowPlaces places{sequence, 5, sequence / 3, 11};
  lab.begin("embedding", fmt::format("{} × {}, {}", rows, width, shape), dtype);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
  for (std::int32_t& id : ids) id = lab.random_below(used + elsewhere);
  for (std::int32_t& id : ids)
    if (id >= used) id = -1;  // in another rank's rows
  const Pair tokens = lab.integers(ids);
  const Pair table = lab.normal({vocabulary, width});
  const Pair positions = lab.normal({sequence + 20, width});
  const Pair y = lab.output({rows, width});
  const Pair dy = lab.normal({rows, width});
  const Pair dtable = lab.normal({vocabulary, width});
  const Pair dpositions = lab.normal({sequence + 20, width});
  lab.run(
      [&](Backend& backend, const Side& of) {
        backend.embedding_forward(of(y), of(tokens), of(table), of(positions), places);
        backend.embedding_backward(of(dtable), of(dpositions), of(dy), of(tokens), places);
      },
      {{"y", y}, {"dtable", dtable}, {"dpositions", dpositions}});
}

struct AdamWCase {
  const char* name;
  DType moments;
  bool master;
  float largest_norm;
};

void check_step(Laboratory& lab, DType dtype, const AdamWCase& which, std::int64_t count) {
  lab.begin("AdamW, " + std::string(which.name), fmt::format("{}", count), dtype);
  const Pair parameter = lab.normal({count});
  const Pair master = lab.master({count});
  const Pair gradient = lab.normal({count}, 1e-2);
  const Pair first = lab.typed({count}, which.moments, 1e-3);
  const Pair second = lab.positive({count}, which.moments);
  const Pair squared_norm = lab.scalar(9.0);
  std::vector<Laboratory::Result> results = {
      {"parameter", parameter}, {"first moment", first}, {"second moment", second}};
  if (which.master) results.push_back({"master", master});
  lab.run(
      [&](Backend& backend, const Side& of) {
        backend.adamw({.parameter = of(parameter),
                       .master = which.master ? of(master) : Tensor{},
                       .gradient = of(gradient),
                       .first_moment = of(first),
                       .second_moment = of(second),
                       .clipping = {.squared_norm = of(squared_norm),
                                    .inverse_scale = 0.5F,
                                    .largest_norm = which.largest_norm},
                       .learning_rate = 1e-2F,
                       .weight_decay = 0.1F,
                       .step = 3,
                       .seed = 7,
                       .first_element = 1000});
      },
      results, which.moments == DType::bf16 ? 2.0 : 1.0);
}

}  // namespace

void check_embedding(Laboratory& lab, DType dtype) {
  check_table(lab, dtype, "many tokens", 3, 128, 768, 5000, 5000);
  check_table(lab, dtype, "five tokens", 4, 200, 100, 300, 5);
  check_table(lab, dtype, "one token", 2, 97, 256, 10, 1);
  check_table(lab, dtype, "half elsewhere", 3, 128, 768, 4096, 4096, 4096);
  check_table(lab, dtype, "most elsewhere", 2, 97, 100, 127, 127, 5000);
}

namespace {

/// Two ranks with `width` columns each.
void check_divided_loss(Laboratory& lab, DType dtype, std::int64_t vocabulary, std::int64_t width) {
  const std::int64_t rows = 24;
  lab.begin("divided cross-entropy", fmt::format("{} × {}", rows, vocabulary), dtype);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
  for (std::int32_t& id : ids) id = lab.random_below(static_cast<std::int32_t>(vocabulary));
  ids[5] = -1;
  const Pair targets = lab.integers(ids);
  const std::array<Pair, 2> logits{lab.normal({rows, width}, 2.0), lab.normal({rows, width}, 2.0)};
  const std::array<Pair, 2> losses{lab.statistic({rows}), lab.statistic({rows})};
  const Pair parts = lab.statistic({2 * rows, LossParts::kNumbers});
  lab.run(
      [&](Backend& backend, const Side& of) {
        for (std::size_t rank = 0; rank < 2; ++rank) {
          const auto at = static_cast<std::int64_t>(rank);
          backend.loss_parts(
              {.parts = of(parts).row_range(at * rows, rows),
               .logits = of(logits[rank]),
               .targets = of(targets),
               .first = at * width,
               .vocabulary = std::clamp<std::int64_t>(vocabulary - at * width, 0, width)});
        }
        for (std::size_t rank = 0; rank < 2; ++rank) {
          const std::int64_t first = static_cast<std::int64_t>(rank) * width;
          backend.joined_cross_entropy(
              {.loss = {.logits = of(logits[rank]),
                        .losses = of(losses[rank]),
                        .targets = of(targets),
                        .vocabulary = std::clamp<std::int64_t>(vocabulary - first, 0, width),
                        .gradient_scale = 1.0F / 23.0F},
               .all = of(parts),
               .first = first});
        }
      },
      {{"losses of rank 0", losses[0]},
       {"losses of rank 1", losses[1]},
       {"dlogits of rank 0", logits[0]},
       {"dlogits of rank 1", logits[1]}});
}

}  // namespace

void check_loss(Laboratory& lab, DType dtype) {
  for (const std::int64_t vocabulary :
       {std::int64_t{50257}, std::int64_t{32000}, std::int64_t{10}}) {
    const std::int64_t rows = 24;
    const std::int64_t width = vocabulary == 10 ? 10 : (vocabulary + 127) / 128 * 128;
    lab.begin("cross-entropy", fmt::format("{} × {}", rows, vocabulary), dtype);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
    for (std::int32_t& id : ids) id = lab.random_below(static_cast<std::int32_t>(vocabulary));
    ids[5] = -1;
    const Pair targets = lab.integers(ids);
    const Pair logits = lab.normal({rows, width}, 2.0);
    const Pair losses = lab.statistic({rows});
    lab.run(
        [&](Backend& backend, const Side& of) {
          backend.cross_entropy({.logits = of(logits),
                                 .losses = of(losses),
                                 .targets = of(targets),
                                 .vocabulary = vocabulary,
                                 .gradient_scale = 1.0F / 23.0F});
        },
        {{"losses", losses}, {"dlogits", logits}});
  }
  check_divided_loss(lab, dtype, 50257, 25216);
  check_divided_loss(lab, dtype, 130, 128);
  check_divided_loss(lab, dtype, 14, 7);
}

void check_sums(Laboratory& lab, DType dtype) {
  for (const std::int64_t count : {std::int64_t{1} << 20, std::int64_t{12345}}) {
    lab.begin("sums", fmt::format("{}", count), dtype);
    const Pair x = lab.ones_and_noise({count});
    const Pair sum = lab.statistic({1});
    const Pair squares = lab.scalar(2.0);
    lab.run(
        [&](Backend& backend, const Side& of) {
          backend.sum(of(sum), of(x), false);
          backend.squared_norm(of(squares), of(x), true);
        },
        {{"sum", sum}, {"squared norm +=", squares}});
  }
}

void check_adamw(Laboratory& lab, DType dtype) {
  for (const std::int64_t count : {std::int64_t{100000}, std::int64_t{1001}}) {
    if (dtype == DType::f32) {
      check_step(lab, dtype, {"fp32", DType::f32, false, 1.0F}, count);
      continue;
    }
    check_step(lab, dtype, {"fp32 master", DType::f32, true, 1.0F}, count);
    check_step(lab, dtype, {"no clipping", DType::f32, true, 0.0F}, count);
    if (dtype == DType::bf16) {
      check_step(lab, dtype, {"pure bf16", DType::bf16, false, 1.0F}, count);
    }
  }
}

void check_elements(Laboratory& lab, DType dtype) {
  for (const std::int64_t count : {std::int64_t{4096}, std::int64_t{1003}}) {
    lab.begin("elements", fmt::format("{}", count), dtype);
    const Pair x = lab.normal({count});
    const Pair sum = lab.normal({count});
    const Pair narrowed = lab.output({count});
    const Pair wide = lab.typed({count}, DType::f32, 1.0);
    const Pair widened = lab.statistic({count});
    const Pair filled = lab.output({count});
    const Pair random = lab.output({count});
    const Pair copied = lab.output({count});
    const Pair zeroed = lab.output({count});
    lab.run(
        [&](Backend& backend, const Side& of) {
          backend.add(of(sum), of(x));
          backend.cast(of(narrowed), of(wide));
          backend.cast(of(widened), of(x));
          backend.fill(of(filled), 0.25F);
          backend.fill_normal(of(random), 0.02F, 42, 17);
          backend.copy(of(copied), of(x));
          backend.zero(of(zeroed));
        },
        {{"add", sum},
         {"narrowing cast", narrowed},
         {"widening cast", widened},
         {"fill", filled},
         {"fill_normal", random},
         {"copy", copied},
         {"zero", zeroed}});
  }
}

}  // namespace shardplan::validator
