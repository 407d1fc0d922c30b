// What of this library the page uses, for `tsc --checkJs`. Written by hand.
export interface Signal<T> {
  value: T;
  peek(): T;
}
export function signal<T>(value: T): Signal<T>;
export function computed<T>(compute: () => T): Signal<T>;
export function batch<T>(run: () => T): T;
export function effect(run: () => void): () => void;
