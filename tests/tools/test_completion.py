"""kintsugi completion and --man: what they offer is what --help lists."""

import re
import shutil
import subprocess

import pytest
from conftest import PROGRAM


def listed(text, heading):
    """First words of the lines under a heading of --help."""
    lines = text.split(f"\n{heading}:\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if re.match(r"  \S", line)]


@pytest.fixture
def commands(program):
    return listed(program.ok("--help").stdout, "Subcommands")


def flags(program, *command):
    """Flags of a command: every one of its --help, the Settings' too."""
    lines = re.findall(r"^  (-\S+)", program.ok(*command, "--help").stdout, re.MULTILINE)
    return {flag for line in lines for flag in line.split(",")}


@pytest.fixture
def complete(program):
    """Words with which bash completes the last of some words, as readline asks the function for them."""
    (program.folder / "completion.bash").write_text(program.ok("completion", "bash").stdout)
    (program.folder / "A.npy").touch()
    script = """source completion.bash
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        read -ra specification <<< "$(complete -p kintsugi)"  # complete -o default -F NAME kintsugi
        "${specification[4]}" kintsugi "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\\n' "${COMPREPLY[@]}" """

    def words(*line):
        run = subprocess.run(["bash", "-uc", script, "bash", *line], cwd=program.folder, capture_output=True, text=True)
        assert run.returncode == 0 and run.stderr == "", run.stderr
        return set(run.stdout.split())

    return words


def test_bash_completes_commands_and_flags(program, commands, complete):
    assert complete("kintsugi", "") == {*commands, *flags(program)} and "gemm" in commands
    assert complete("kintsugi", "ge") == {"gemm", "generate"}
    for command in commands:
        assert complete("kintsugi", command, "-") == flags(program, command), command
    assert complete("kintsugi", "gemm", "A.npy", "--trans") == {"--transa", "--transb"}


def test_bash_completes_values(program, commands, complete):
    assert complete("kintsugi", "gemm", "--type", "") == {"fp32", "fp64", "c32", "c64", "dd"}
    assert complete("kintsugi", "gemm", "--type", "=") == complete("kintsugi", "gemm", "--type", "")
    assert complete("kintsugi", "gemm", "--type", "=", "fp") == {"fp32", "fp64"}
    assert complete("kintsugi", "gemm", "--policy", "e") == {"emulate"}, "accepted values of the settings"
    assert complete("kintsugi", "demo", "--memory", "d") == {"device"}
    assert complete("kintsugi", "completion", "") == {"bash", "zsh", "fish"}
    assert complete("kintsugi", "help", "") == set(commands) - {"help"}
    assert complete("kintsugi", "engines", "") == flags(program, "engines"), "it takes no other words"


def test_bash_leaves_files_to_readline(complete):
    """No word of ours: the option `default` of complete then offers files."""
    for line in (["gemm", ""], ["gemm", "A"], ["gemm", "-o", ""], ["run", "--", "cat", "A"]):
        assert complete("kintsugi", *line) == set(), line


def test_bash_completes_the_program_after_dashes(complete):
    assert "bash" in complete("kintsugi", "run", "--blas", "--", "bas")


def shell(name, program):
    if not shutil.which(name):
        pytest.skip(f"there is no {name} here")
    file = program.folder / f"completion.{name}"
    file.write_text(program.ok("completion", name).stdout)
    return file.name


def test_fish(program, commands):
    file = shell("fish", program)

    def complete(line):
        run = subprocess.run(["fish", "-c", f"source {file}; complete -C '{line}'"], cwd=program.folder, env=program.environment,
                             capture_output=True, text=True)
        assert run.returncode == 0 and run.stderr == "", run.stderr
        return {line.split("\t")[0] for line in run.stdout.splitlines()}

    assert complete("kintsugi ") == set(commands)
    assert complete("kintsugi gemm --type ") == {"fp32", "fp64", "c32", "c64", "dd"}
    for command in commands:
        assert {f"--{flag}" for flag in ("help", "json")} & flags(program, command) <= complete(f"kintsugi {command} --")
    assert complete("kintsugi completion ") == {"bash", "zsh", "fish"}


def test_zsh(program):
    """In a terminal of its own, since zsh completes nowhere else; a key then writes the line into a file."""
    file = shell("zsh", program)
    script = f"""zmodload zsh/zpty; zpty shell zsh -f -i
        zpty -w shell 'autoload -Uz compinit; compinit -D; source ./{file}; bindkey "^I" complete-word
            write() {{ print -r -- $BUFFER > line; exit }}; zle -N write; bindkey "^X" write'
        zpty -w -n shell "$1"$'\\t\\x18'
        while zpty -t shell; do zpty -r shell > /dev/null || break; done"""

    def complete(line):
        subprocess.run(["zsh", "-fc", script, "zsh", line], cwd=program.folder, env=program.environment, timeout=60, check=True)
        return (program.folder / "line").read_text().strip()

    assert complete("kintsugi gem") == "kintsugi gemm"
    assert complete("kintsugi gemm --transa=N --typ") == "kintsugi gemm --transa=N --type="
    assert complete("kintsugi gemm --policy=em") == "kintsugi gemm --policy=emulate"
    assert complete("kintsugi completion fi") == "kintsugi completion fish"
    (program.folder / "operand.npy").touch()
    assert complete("kintsugi gemm oper") == "kintsugi gemm operand.npy"


def test_bad_shells(program):
    assert program.bad("completion", "bsh").startswith('SHELL: "bsh" is not accepted; did you mean bash?')
    assert program.bad("completion") == "SHELL: is missing"


def test_the_manual_has_all_commands_and_flags(program, commands):
    text = program.ok("--man").stdout
    assert text.startswith(".TH KINTSUGI 1 ")
    plain = text.replace("\\-", "-")
    sections = dict(section.split("\n", 1) for section in re.split(r"^\.SS ", plain, flags=re.MULTILINE)[1:])
    assert list(sections) == commands
    for command in commands:
        shown = re.findall(r"^\\fB(-[^\\]*)\\fR", sections[command], re.MULTILINE)
        assert {flag for names in shown for flag in names.split(",")} == flags(program, command), command
        example = re.search(rf"^(.*kintsugi {command}.*)$", program.ok(command, "--help").stdout.split("Example:\n")[1], re.MULTILINE)
        assert example[1].strip() in sections[command]
    assert ".SH EXIT STATUS\n" in plain and "2 bad input" in plain.split(".SH EXIT STATUS\n")[1]


def test_man_shows_the_manual(program):
    if not shutil.which("man"):
        pytest.skip("there is no man here")
    (program.folder / "kintsugi.1").write_text(program.ok("--man").stdout)
    shown = subprocess.run(["man", "--warnings", "-l", "kintsugi.1"], cwd=program.folder, capture_output=True, text=True,
                           env={**program.environment, "MANWIDTH": "200", "MANPAGER": "cat"})
    assert shown.returncode == 0 and shown.stderr == "", shown.stderr
    assert "kintsugi gemm [OPTIONS] A B" in shown.stdout


def test_the_programs_name_is_in_the_scripts(program):
    """They are made for the name that the program has in messages, not for its path."""
    assert PROGRAM not in program.ok("completion", "bash").stdout
    assert program.ok("completion", "bash").stdout.endswith("complete -o default -F _kintsugi kintsugi\n")
