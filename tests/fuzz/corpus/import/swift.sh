NPROC_PER_NODE=8 swift sft --model gpt2 --tuner_type lora --deepspeed zero3 \
  --gradient_accumulation_steps $(expr 16 / 8) --target_modules all-linear
