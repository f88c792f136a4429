package notification

import (
	"encoding/json"

	clusterv1beta1 "github.com/fleetflow/fleetflow/apis/cluster/v1beta1"
)

// maxTeams is how much text a message to Teams has: it takes 28 KB in all.
const maxTeams = 12 << 10

// adaptiveCard is what a workflow of Teams posts. Texts are in text runs, in which nothing is markup: what users have said has no links.
type adaptiveCard struct {
	Type    string       `json:"type"`
	Schema  string       `json:"$schema"`
	Version string       `json:"version"`
	Body    []cardBlock  `json:"body"`
	Actions []cardAction `json:"actions,omitempty"`
}

type cardBlock struct {
	Type    string    `json:"type"`
	Inlines []cardRun `json:"inlines"`
}

type cardRun struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Weight   string `json:"weight,omitempty"`
	Size     string `json:"size,omitempty"`
	Color    string `json:"color,omitempty"`
	FontType string `json:"fontType,omitempty"`
}

// cardAction opens a page; cards have no action that does anything else.
type cardAction struct {
	Type  string `json:"type"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

type teamsAttachment struct {
	ContentType string       `json:"contentType"`
	Content     adaptiveCard `json:"content"`
}

type teamsMessage struct {
	Type        string            `json:"type"`
	Attachments []teamsAttachment `json:"attachments"`
}

// cardColors stand for moods.
var cardColors = map[Mood]string{Good: "good", Waits: "warning", Bad: "attention"}

// teamsBody returns a message as a workflow of Teams takes it.
func teamsBody(message *Message) ([]byte, error) {
	card := adaptiveCard{Type: "AdaptiveCard", Schema: "http://adaptivecards.io/schemas/adaptive-card.json", Version: "1.4"}
	add := func(run cardRun) {
		run.Type = "TextRun"
		card.Body = append(card.Body, cardBlock{Type: "RichTextBlock", Inlines: []cardRun{run}})
	}
	add(cardRun{Text: clusterv1beta1.CutText(message.Title, maxWhy), Weight: "bolder", Size: "medium", Color: cardColors[message.Mood]})
	left := maxTeams
	for _, line := range message.Lines() {
		if left <= len("…") {
			break
		}
		line = clusterv1beta1.CutText(line, left)
		left -= len(line)
		add(cardRun{Text: line})
	}
	add(cardRun{Text: "Next: " + message.Next, FontType: "monospace"})
	if message.Link != "" {
		card.Actions = []cardAction{{Type: "Action.OpenUrl", Title: "Open the dashboard", URL: message.Link}}
	}
	return json.Marshal(teamsMessage{
		Type: "message", Attachments: []teamsAttachment{{ContentType: "application/vnd.microsoft.card.adaptive", Content: card}},
	})
}
