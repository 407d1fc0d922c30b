// What of this library the page uses, for `tsc --checkJs`. Written by hand.
export type Child = unknown;
export function h(type: unknown, props: Record<string, unknown> | null, ...children: Child[]): Child;
export function render(child: Child, parent: Element): void;
