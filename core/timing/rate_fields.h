// Every fitted rate by its name, for files and fits: "kernels.product.seconds".
#pragma once

#include <string>

#include "timing/rates.h"

namespace shardplan {

/// Those of products that ran from graphs.
template <typename Rates, typename Visit>
void for_each_product_rate(Rates& p, Visit&& visit) {
  visit("product.seconds", p.seconds);
  visit("product.wave_seconds", p.wave_seconds);
  visit("product.tile.large", p.tile[0]);
  visit("product.tile.narrow", p.tile[1]);
  visit("product.tile.small", p.tile[2]);
  visit("product.memory", p.memory);
  visit("product.throttling", p.throttling);
  visit("product.reduction", p.reduction);
  visit("product.burst", p.burst);
  visit("product.unaligned", p.unaligned);
  visit("product.odd", p.odd);
  visit("product.fp32", p.fp32);
  visit("product.fp32_tile", p.fp32_tile);
  visit("product.fp8", p.fp8);
  visit("product.tf32", p.tf32);
  visit("product.tf32_summed", p.tf32_summed);
}

/// Those of the products that our engine starts.
template <typename Rates, typename Visit>
void for_each_library_rate(Rates& l, Visit&& visit) {
  visit("product.library.gap", l.gap);
  visit("product.library.split", l.split);
  visit("product.library.cached", l.cached);
  visit("product.library.burst", l.burst);
  visit("product.library.fp32_gap", l.fp32_gap);
  visit("product.library.fp32_split", l.fp32_split);
  visit("product.library.fp32_small", l.fp32_small);
  visit("product.library.fp32_tiny", l.fp32_tiny);
}

/// Calls visit(name, value) for each rate; `rates` is a TimeRates, const or not.
template <typename Rates, typename Visit>
void for_each_rate(Rates& rates, Visit&& visit) {
  auto& kernels = rates.kernels;
  for (std::size_t k = static_cast<std::size_t>(KernelKind::elementwise); k < kKernelKinds; ++k) {
    const std::string at = "memory." + std::string(name_of(static_cast<KernelKind>(k)));
    auto& r = kernels.memory[k];
    visit(at + ".bandwidth", r.bandwidth);
    visit(at + ".cached", r.cached);
    visit(at + ".slots", r.slots);
    visit(at + ".seconds", r.seconds);
  }
  visit("memory.cache_bytes", kernels.cache_bytes);
  visit("memory.turned.slots", kernels.turned_slots);
  visit("memory.short_row.slots", kernels.short_row_slots);
  visit("memory.in_step", kernels.in_step);
  visit("kernels.gap", kernels.gap);
  for_each_product_rate(kernels.product, visit);
  for_each_library_rate(kernels.library, visit);
  const auto attention = [&](const std::string& at, auto& r) {
    visit(at + ".peak", r.peak);
    visit(at + ".half_width", r.half_width);
    visit(at + ".seconds", r.seconds);
    visit(at + ".diagonal", r.diagonal);
    visit(at + ".wide", r.wide);
    visit(at + ".tail", r.tail);
    visit(at + ".memory", r.memory);
  };
  attention("attention.forward", kernels.attention);
  attention("attention.backward", kernels.attention_backward);
  attention("attention.engine_forward", kernels.engine_forward);
  attention("attention.engine_backward", kernels.engine_backward);
  attention("attention.flash_forward", kernels.flash);
  attention("attention.flash_backward", kernels.flash_backward);
  attention("attention.masked_forward", kernels.masked);
  attention("attention.masked_backward", kernels.masked_backward);
  attention("attention.by_rows_forward", kernels.by_rows);
  attention("attention.by_rows_backward", kernels.by_rows_backward);
  visit("attention.dropout", kernels.attention_dropout);
  visit("attention.fp32", kernels.fp32_attention);
  for (std::size_t i = 0; i < kIssues; ++i)
    visit("host." + std::string(name_of(static_cast<Issue>(i))) + ".seconds",
          rates.host.seconds[i]);
  visit("host.launch_wait", rates.host.launch_wait);
  visit("host.empty", rates.host.empty);
  visit("host.no_grad", rates.host.no_grad);
  visit("host.collective_seconds", rates.host.collective_seconds);
  visit("host.message_seconds", rates.host.message_seconds);
  visit("host.phase_seconds", rates.host.phase_seconds);
  visit("host.deepspeed_adam_elements_per_second", rates.host.deepspeed_adam_elements_per_second);
  visit("host.torch_adam_elements_per_second", rates.host.torch_adam_elements_per_second);
  visit("host.native_adam_bytes_per_second", rates.host.native_adam_bytes_per_second);
  visit("host.native_rounding_bytes_per_second", rates.host.native_rounding_bytes_per_second);
  visit("links.node", rates.links.node);
  visit("links.network", rates.links.network);
  visit("links.seconds", rates.links.seconds);
  visit("links.node_seconds", rates.links.node_seconds);
  visit("links.host", rates.links.host);
  visit("links.host_memory", rates.links.host_memory);
  visit("links.contention", rates.links.contention);
}

}  // namespace shardplan
