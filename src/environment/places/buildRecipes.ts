/** Recipes of images that no registry has. The names are hashes of what the images are built from, so one name means one recipe everywhere. */

export interface BuildFile {
  /** Below the folder that is built, with "/". */
  readonly path: string;
  readonly content: Uint8Array;
  readonly executable: boolean;
  /** An empty folder. */
  readonly isFolder?: boolean;
}

export interface BuildRecipe {
  /** Read when it is built. Throws when they are no longer what the name says. */
  readonly files: () => readonly BuildFile[];
  readonly timeoutS: number;
  /** Among the files; absent: Dockerfile. */
  readonly dockerfile?: string;
  /** The stage that is the image; absent: the last. */
  readonly target?: string;
  readonly args?: Readonly<Record<string, string>>;
  /** The image that it starts from, where that may be built as well. */
  readonly from?: string;
}

const recipes = new Map<string, BuildRecipe>();

/** Keeps the recipe of an image, before anybody asks for the image. */
export const rememberRecipe = (image: string, recipe: BuildRecipe): void => void recipes.set(image, recipe);

export const recipeOf = (image: string): BuildRecipe | undefined => recipes.get(image);
