"""Run folders: opened, resumed, shown, described; and the recipes that ship with the program."""
