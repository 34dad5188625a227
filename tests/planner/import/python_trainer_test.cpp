// Programs in Python and notebooks: what their calls say of a training.
#include <gmock/gmock.h>

#include "import/python_program.h"
#include "import/python_trainer.h"
#include "import_testing.h"

namespace shardplan::importing::python_trainer_test {
namespace {

using ::testing::HasSubstr;

const PythonCall::Argument* argument(const std::vector<PythonCall>& calls, std::string_view name) {
  for (const PythonCall& call : calls)
    for (const PythonCall::Argument& a : call.arguments)
      if (a.name == name) return &a;
  return nullptr;
}

Json value(std::string_view text) {
  const std::vector<PythonCall> calls = python_calls(text);
  const PythonCall::Argument* a = argument(calls, "x");
  return a == nullptr ? Json("no argument") : a->value.value_or("unknown");
}

TEST(PythonProgram, ValuesOfLiteralsAndVariables) {
  EXPECT_EQ(value("f(x=2)"), 2);
  EXPECT_EQ(value("f(x = 2e-4)"), 2e-4);
  EXPECT_EQ(value("f(x=1_000)"), 1000);
  EXPECT_EQ(value("f(x='a' \"b\")"), "ab");
  EXPECT_EQ(value("f(x=[\"q\", 'v',],  # both\n)"), Json({"q", "v"}));
  EXPECT_EQ(value("f(x={'a': 1})"), Json({{"a", 1}}));
  EXPECT_EQ(value("f(x=(3))"), 3);
  EXPECT_EQ(value("f(x=torch.bfloat16)"), "torch.bfloat16");
  EXPECT_EQ(value("n = 4\nf(x=n)"), 4);
  EXPECT_EQ(value("n: int = 4\nf(x=n * 2)"), 8);
  EXPECT_EQ(value("class C:\n    n = 4\nf(x=C.n)"), 4);
  EXPECT_EQ(value("c = {'n': 4}\nf(x=c['n'])"), 4);
  EXPECT_EQ(value("def g(n: int = 4, m=2):\n    f(x=n // m)"), 2);
  EXPECT_EQ(value("f(x=not is_bfloat16_supported())"), false);
  EXPECT_EQ(value("k = {'x': 3}\nf(**k)"), 3);
}

TEST(PythonProgram, ArgumentsOfAProgramHaveTheirDefaults) {
  EXPECT_EQ(value("p.add_argument('-n', '--n-each', type=int, default=4)\nf(x=args.n_each)"), 4);
  EXPECT_EQ(value("@dataclass\nclass A:\n    n: Optional[int] = field(default=4, metadata={})\n\n"
                  "def g(script_args):\n    f(x=script_args.n)"),
            4);
  EXPECT_EQ(value("n = int(os.getenv('N', '4'))\nf(x=n)"), 4);
  EXPECT_EQ(value("p.add_argument('--n', required=True)\nf(x=args.n)"), "unknown");
  EXPECT_EQ(value("p.add_argument('--n', default=4)\nf(x=config.n)"), "unknown");
  EXPECT_EQ(
      value("p.add_argument('--n', default=4)\np.add_argument('--n', default=8)\nf(x=args.n)"),
      "unknown");
}

TEST(PythonProgram, AChoiceByAKnownFlagIsMade) {
  EXPECT_EQ(value("flash = False\nf(x=6 if flash else 4)"), 4);
  EXPECT_EQ(value("f(x=6 if True else 4)"), 6);
  EXPECT_EQ(value("f(x=6 if True else 4 * 2)"), "unknown");
  EXPECT_EQ(value("f(x=6 if n == 2 else 4)"), "unknown");
}

TEST(PythonProgram, WhatOnlyARunTellsIsNotKnown) {
  EXPECT_EQ(value("f(x=args.n)"), "unknown");
  EXPECT_EQ(value("f(x=3 if args.n else 4)"), "unknown");
  EXPECT_EQ(value("f(x=f'{name}-x')"), "unknown");
  EXPECT_EQ(value("n = 4\nn = g()\nf(x=n)"), "unknown");
  EXPECT_EQ(value("if False:\n    f(x=1)\n"), "no argument");
  EXPECT_EQ(value("f(x=[i for i in range(4)])"), "unknown");
}

TEST(PythonProgram, BrokenTextsEnd) {
  python_calls("f(x=[1, (2, {'a': ");
  python_calls("f(((((((\n)]]}}\n@@@ = = ==\n'''never closed");
  python_calls(std::string(10'000, '('));
  python_calls("def f(a, b: Dict[str, int] = 3, *c");
}

constexpr std::string_view kUnsloth = R"(from unsloth import FastLanguageModel
max_seq_length = 2048
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "unsloth/Llama-3.1-8B-bnb-4bit", max_seq_length = max_seq_length, dtype = None)
model = FastLanguageModel.get_peft_model(
    model, r = 16, target_modules = ["q_proj", "v_proj"], use_gradient_checkpointing = "unsloth")
trainer = SFTTrainer(model = model, args = SFTConfig(
    per_device_train_batch_size = 2, gradient_accumulation_steps = 4, optim = "adamw_8bit"))
if False:
    model, tokenizer = FastLanguageModel.from_pretrained(model_name = "lora_model")
)";

TEST(PythonTrainer, UnslothsProgram) {
  const Json job = job_of(kUnsloth, {{"cluster", "1xL4"}});
  EXPECT_EQ(job.at("model"), "unsloth/Llama-3.1-8B");
  EXPECT_EQ(job.at("trainer"), "trl");
  EXPECT_EQ(job.at("checkpointing"), "full");
  const Json& work = job.at("workload");
  EXPECT_EQ(work.at("micro_batch"), 2);
  EXPECT_EQ(work.at("gradient_accumulation"), 4);
  EXPECT_EQ(work.at("sequence_length"), 2048);
  EXPECT_EQ(work.at("lora").at("quantization"), "nf4_double");
  EXPECT_EQ(work.at("lora").at("rank"), 16);
  EXPECT_EQ(work.at("lora").at("targets"), Json({"q_proj", "v_proj"}));
}

/// Its own defaults are not TRL's: nothing is computed again unless the program says so.
TEST(PythonTrainer, ATrainerOfTransformers) {
  const std::string head =
      "from transformers import Trainer\n"
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B', "
      "torch_dtype=torch.bfloat16)\nmodel = get_peft_model(model, LoraConfig(r=8))\n";
  const std::string tail =
      "Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=4, bf16=True))\n";
  const Json job = job_of(head + tail, {{"cluster", "1xL4"}});
  EXPECT_EQ(job.at("trainer"), "hf_trainer");
  EXPECT_NE(job.value("checkpointing", "none"), "full");
  EXPECT_EQ(job.at("workload").at("lora").at("rank"), 8);
  const std::string prepared = "model = prepare_model_for_kbit_training(model)\n";
  EXPECT_EQ(job_of(head + prepared + tail, {{"cluster", "1xL4"}}).at("checkpointing"), "full");
}

TEST(PythonTrainer, TheAlgorithmIsItsTrainers) {
  const std::string program =
      "from trl import DPOConfig, DPOTrainer\n"
      "args = DPOConfig(per_device_train_batch_size=1, output_dir='x')\n"
      "trainer = DPOTrainer('Qwen/Qwen2.5-1.5B', args=args)\n";
  EXPECT_EQ(job_of(program, {{"cluster", "1xL4"}, {"model", "qwen2.5-1.5b"}})
                .at("workload")
                .at("algorithm"),
            "dpo");
}

/// ORPO's answers are given, and generated by nobody.
TEST(PythonTrainer, OrpoGeneratesNothing) {
  const std::string program =
      "from trl import ORPOConfig\nargs = ORPOConfig(per_device_train_batch_size=1, "
      "max_length=512, max_prompt_length=256, max_completion_length=256)\n";
  const Json work =
      job_of(program, {{"cluster", "1xL4"}, {"model", "qwen2.5-1.5b"}}).at("workload");
  EXPECT_EQ(work.at("algorithm"), "orpo");
  EXPECT_FALSE(work.contains("new_tokens"));
}

TEST(PythonTrainer, ABatchThatOnlyARunTellsIsAskedFor) {
  const std::string program =
      "from transformers import TrainingArguments\n"
      "args = TrainingArguments(per_device_train_batch_size=parsed.batch, bf16=True)\n";
  EXPECT_THAT(error_of(program, {{"cluster", "1xL4"}, {"model", "qwen2.5-1.5b"}}),
              HasSubstr("--micro-batch"));
}

TEST(PythonTrainer, ProgramsWithoutSuchCallsSayWhatIsMissing) {
  EXPECT_THAT(error_of("import torch\nmodel.fit(3)\n"), HasSubstr("no TrainingArguments"));
  EXPECT_THAT(error_of("from a import B\nSentenceTransformerTrainingArguments(bf16=True)\n"),
              HasSubstr("no TrainingArguments"));
}

Json notebook(std::initializer_list<std::string> cells) {
  Json list = Json::array();
  for (const std::string& cell : cells)
    list.push_back({{"cell_type", "code"}, {"source", Json::array({cell})}});
  return {{"nbformat", 4}, {"cells", list}};
}

TEST(PythonTrainer, NotebooksAreTheirCells) {
  const Json flags{{"cluster", "1xL4"}};
  const std::string whole =
      notebook({"%%capture\n!pip install unsloth", std::string(kUnsloth)}).dump();
  EXPECT_EQ(job_of(whole, flags), job_of(kUnsloth, flags));
  const std::string starts =
      notebook({"!accelerate launch train.py \\\n  --model_name_or_path Qwen/Qwen2.5-7B \\\n"
                "  --per_device_train_batch_size 3 --output_dir x"})
          .dump();
  EXPECT_EQ(job_of(starts, flags).at("workload").at("micro_batch"), 3);
  const std::string writes = notebook({"%%writefile job.yaml\nmodel_name_or_path: Qwen/Qwen2.5-7B\n"
                                       "per_device_train_batch_size: 5\noutput_dir: x\n"})
                                 .dump();
  EXPECT_EQ(job_of(writes, flags).at("workload").at("micro_batch"), 5);
  EXPECT_THAT(error_of(notebook({"print(3)"}).dump()), HasSubstr("a notebook"));
}

}  // namespace
}  // namespace shardplan::importing::python_trainer_test
