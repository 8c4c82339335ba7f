// Package scenario lets a controller written in Go take part in a Scenario of Kubescene, in turns.
//
// A Scenario plays in steps: while one controller works, the others stand still. A controller therefore
// says at the end of its loop that it is parked, and goes on when its next turn has come:
//
//	func (c *Controller) processNextWorkItem(ctx context.Context) bool {
//		defer scenario.CheckScenarioStepPhase("my-operator", c.simulator)
//		// ...
//	}
//
// Written as the first statement it is the last thing that the function does. The command kubescene-gen
// writes that line, and takes it away again, where a comment asks for it.
//
// While no Scenario runs the call returns at once. The package needs the standard library only.
package scenario
