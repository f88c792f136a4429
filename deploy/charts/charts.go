// Package charts has the chart of the member agent, for programs that install it.
package charts

import "embed"

// MemberAgent is the chart of the member agent, in the folder MemberAgentFolder.
//
//go:embed all:member-agent
var MemberAgent embed.FS

// MemberAgentFolder is where the chart is in MemberAgent.
const MemberAgentFolder = "member-agent"
