#!/bin/bash
N=${NODES:-"2"}
ARGS=(--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 100)
torchrun --nproc_per_node $((2 * 4)) --nnodes $N pretrain_gpt.py "${ARGS[@]}" \
  --micro-batch-size 1 --global-batch-size 64 --seq-length 128 --bf16 "$@"
