"""What other tools call a setting or an option, and how it is written here: for the errors about unknown names."""

from __future__ import annotations

RUN_FIRST = 'the run or the recipe right after the verb: clearhead VERB RUN "a text", clearhead train my.toml'
TEXT_LAST = 'texts after the run, without an option: clearhead VERB RUN "a text"; or a file: < FILE'
STEPS = "train.steps=1000 (training is counted in steps; train RECIPE --dry-run says how many epochs they are)"
TOKENS = "data.batch_tokens=4096 (a batch is counted in tokens, padding included, not in examples)"

HABITS: dict[str, str] = {  # names, in lower case and with underscores -> what is written instead
    "lr max_lr": "train.learning_rate=1e-3",
    "epoch epochs num_epochs n_epochs max_epochs num_train_epochs": STEPS,
    "iters max_iters iterations num_steps n_steps max_steps train_steps": "train.steps=1000",
    "batch batch_size bs train_batch_size per_device_train_batch_size": TOKENS,
    "accumulate grad_accum gradient_accumulation gradient_accumulation_steps": "train.step_tokens=65536",
    "warmup_steps warmup_iters num_warmup_steps": "train.warmup=100",
    "optimizer optim": "train.optimiser=adamw",
    "scheduler lr_scheduler lr_scheduler_type": "train.schedule=cosine",
    "grad_clip max_norm max_grad_norm gradient_clip_val": "train.clip=1",
    "wd": "train.weight_decay=0.1",
    "eval_every eval_steps eval_interval": "train.evaluate_every=200",
    "early_stopping early_stopping_patience": "train.patience=3",
    "fp16 bf16 amp half mixed_precision dtype": "train.precision=bfloat16 to train, --weights bfloat16 to use a run",
    "gpu cuda use_cuda": "train.device=cuda to train, --device cuda to use a run",
    "dim n_embd hidden_size embed_dim": "model.d_model=384",
    "n_layer n_layers num_layers num_hidden_layers": "model.layers=4",
    "n_head n_heads num_heads num_attention_heads": "model.heads=4",
    "vocab_size": "tokenizer.vocab=8000",
    "block_size context_length seq_len max_len max_seq_len max_seq_length": "data.max_length=256",
    "dataset dataset_path data_dir train_file": "data.path=FOLDER",
    "out_dir output_dir save_dir output_path": "--run FOLDER",
    "ckpt resume_from resume_from_checkpoint": "--resume, after the recipe or the folder of the run",
    "config recipe model model_path model_name model_name_or_path checkpoint": RUN_FIRST,
    "prompt prompts text texts input inputs sentence": TEXT_LAST,
    "max_tokens max_new_tokens num_tokens": "--tokens 100",
    "beams num_beams beam_size beam_width": "--beam 4",
    "num_return_sequences": "--nbest 3",
    "do_sample": "--sample for translate; generate and chat sample unless --greedy is given",
}


def written_here(name: str) -> str:
    """What is written instead of a name, an option or a setting that other tools have; empty: no tool is known."""
    word = name.lstrip("-").partition("=")[0].rpartition(".")[2].replace("-", "_").lower()
    return next((remedy for names, remedy in HABITS.items() if word in names.split()), "")
