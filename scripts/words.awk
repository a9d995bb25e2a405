# Print the Makefile's words: `##@ Group` opens a group, `word: needs  ## sentence` is a word of it.
BEGIN { FS = ":.*## " }
/^##@ / { printf "\n%s\n", substr($0, 5) }
/^[a-z-]+:.*## / { printf "  %-12s %s\n", $1, $2 }
