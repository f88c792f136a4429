package viewer

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Picture is one time that a program has drawn.
type Picture struct {
	// Lines are all there is to see afterwards, without colours.
	Lines []string
	// Written are the lines that were drawn; Same are those of them that had been there before, letter for letter.
	Written, Same int
	// Bytes is how much was sent for it.
	Bytes int
}

var (
	// up begins a picture over the one before.
	up     = regexp.MustCompile(`\x1b\[(\d+)A\r`)
	colour = regexp.MustCompile(`\x1b\[[0-9;]*m`)
)

const (
	restOfLine   = "\x1b[K"
	restOfScreen = "\x1b[J"
	escape       = "\x1b"
)

// Pictures takes what a terminal was sent apart. It knows lines that are written over others, the rest of a line and the
// rest of the screen being cleared, and colours. Anything else is an error: clearing what is then drawn again flickers.
func Pictures(sent string) ([]Picture, error) {
	sent = strings.ReplaceAll(sent, "\r\n", "\n")
	var pictures []Picture
	var screen []string
	begin := 0
	height := 0
	draw := func(end int) error {
		picture, lines, err := drawn(screen, sent[begin:end], height)
		if err != nil {
			return fmt.Errorf("picture %d: %w", len(pictures)+1, err)
		}
		screen = lines
		pictures = append(pictures, picture)
		return nil
	}
	for _, at := range up.FindAllStringSubmatchIndex(sent, -1) {
		if at[0] > begin || len(pictures) > 0 {
			if err := draw(at[0]); err != nil {
				return nil, err
			}
		}
		begin = at[1]
		height, _ = strconv.Atoi(sent[at[2]:at[3]]) // digits, and few
		if height > len(screen) {
			return nil, fmt.Errorf("picture %d begins %d lines above the last line, where nothing was drawn: %d lines are", len(pictures)+1, height,
				len(screen))
		}
	}
	if begin < len(sent) {
		if err := draw(len(sent)); err != nil {
			return nil, err
		}
	}
	return pictures, nil
}

// drawn draws over the last lines of a screen.
func drawn(screen []string, text string, height int) (Picture, []string, error) {
	picture := Picture{Bytes: len(text)}
	lines := append([]string{}, screen...)
	at := len(screen) - height
	for text != "" {
		if rest, cleared := strings.CutPrefix(text, restOfScreen); cleared {
			lines = lines[:at]
			text = rest
			continue
		}
		line, rest, whole := strings.Cut(text, "\n")
		if !whole {
			return picture, nil, fmt.Errorf("the last line does not end: %q", line)
		}
		text = rest
		if line != "" {
			line, cleared := strings.CutSuffix(strings.TrimPrefix(line, "\r"), restOfLine)
			plain := colour.ReplaceAllString(line, "")
			if !cleared || strings.Contains(plain, escape) {
				return picture, nil, fmt.Errorf("the line %q leaves something of what was there, or does something else to the screen", line)
			}
			picture.Written++
			if at < len(lines) && lines[at] == line {
				picture.Same++
			}
			lines = append(lines[:at:at], append([]string{line}, lines[min(at+1, len(lines)):]...)...)
		}
		at++
	}
	for _, line := range lines {
		picture.Lines = append(picture.Lines, colour.ReplaceAllString(line, ""))
	}
	return picture, lines, nil
}
